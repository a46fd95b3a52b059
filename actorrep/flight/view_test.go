package flight_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Post stands somewhere.
type Post struct {
	actorrep.Base
	X, Y float64 `net:""`
}

// Location makes it located.
func (p *Post) Location() (x, y, z float64) { return p.X, p.Y, 0 }

// TestViewpoints: the film has where a connection looks from, from when on, also after its view target was destroyed and when it stands for longer than is kept;
// and the distance from which an actor is relevant.
func TestViewpoints(t *testing.T) {
	var past *flight.Recorder
	hero, far := &Post{X: 3, Y: 4}, &Post{X: 50}
	sim := simtest.NewSimulation(4, func(h *simtest.Host) (simtest.Program, error) {
		cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
		w := actorrep.NewClient(actorrep.Config{})
		if h.IsServer() {
			w = actorrep.NewServer(actorrep.Config{})
		}
		require.NoError(t, w.Register("Post", (*Post)(nil)))
		cfg.Channels = w.ChannelTypes()
		var d *driver.Driver
		var err error
		var peer *actorrep.Peer
		if h.IsServer() {
			cfg.Joined = func(c *driver.Conn) { peer = w.AddConn(c) }
			if cfg.Socket, err = h.Listen(7777); err != nil {
				return nil, err
			}
			if d, err = driver.Listen("", cfg); err == nil {
				past, err = flight.New(w, d, flight.Config{Keep: 8 * time.Second})
			}
			far.SetCullDistance(16)
			require.NoError(t, w.Spawn(hero))
			require.NoError(t, w.Spawn(far))
		} else {
			cfg.Socket, cfg.Client = h.Open(), control.ClientConfig{URL: h.Name()}
			d, err = driver.Dial("10.0.0.1:7777", cfg)
		}
		n := 0
		return program(func(now time.Time) error {
			d.TickDispatch(now)
			at := d.Time(now)
			if n++; h.IsServer() {
				switch {
				case n == 60:
					peer.SetViewpoint(1, 2, 3)
				case n > 60 && n < 120:
					peer.SetViewpoint(float64(n), 0, 0)
				case n == 120:
					peer.SetViewTarget(hero)
				case n == 180:
					require.NoError(t, w.Destroy(hero))
				case n == 41*60:
					peer.SetViewTarget(far)
				case n == 42*60:
					require.NoError(t, w.Destroy(far))
				case n == 43*60:
					peer.SetViewpoint(7, 8.5, 0)
				}
			}
			w.Step(at)
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	sim.AddHost("server", true)
	sim.AddHost("Ann", false)
	sim.RunUntil(4 * time.Second)
	d, _ := read(t, past.Take(), flight.View{})
	require.Zero(t, d.Actors[0].Seen)
	require.EqualValues(t, 16, d.Actors[1].Seen)
	views := d.Conns[0].Views
	require.EqualValues(t, []any{0.0, -1.0}, views[0][1:3], "none yet")
	require.Equal(t, []any{1.0, -1.0, []any{1.0, 2.0, 3.0}}, views[1][1:])
	require.InDelta(t, 1000, views[1][0], 30)
	moves := views[2 : len(views)-2]
	require.GreaterOrEqual(t, len(moves), 8)
	require.LessOrEqual(t, len(moves), 11, "not in each Step")
	require.Equal(t, []any{2.0, 0.0}, views[len(views)-2][1:3], "the hero's")
	require.InDelta(t, 2000, views[len(views)-2][0], 30)
	require.Equal(t, []any{1.0, -1.0, []any{3.0, 4.0, 0.0}}, views[len(views)-1][1:], "where it was")
	require.InDelta(t, 3000, views[len(views)-1][0], 30)
	died := slices.IndexFunc(d.Notes, func(n note) bool {
		return strings.Contains(n.Text, "its view target, "+d.Actors[0].ID+", was destroyed")
	})
	require.Positive(t, died)
	require.InDelta(t, 3000, d.Notes[died].At, 30)
	require.Equal(t, 0, d.Notes[died].Actor)
	require.Equal(t, d.Conns[0].ID, d.Notes[died].Conn)
	sim.RunUntil(40 * time.Second)
	d, _ = read(t, past.Take(), flight.View{})
	views = d.Conns[0].Views
	require.NotEmpty(t, views)
	require.Equal(t, []any{1.0, -1.0, []any{3.0, 4.0, 0.0}}, views[len(views)-1][1:], "it stands there")
	require.Greater(t, views[len(views)-1][0], 34000.0)
	require.Contains(t, d.Notes[len(d.Notes)-1].Text, "was destroyed", "it has been given no other place")
	sim.RunUntil(44 * time.Second)
	d, _ = read(t, past.Take(), flight.View{})
	more := d.Notes[max(0, len(d.Notes)-3):]
	for i, text := range []string{"its view target is actor 2 now", "its view target, actor 2, was destroyed", "it looks from (7, 8.5, 0) now: SetViewpoint"} {
		require.Contains(t, more[i].Text, text)
		require.InDelta(t, 41000+1000*i, more[i].At, 30)
		require.Equal(t, d.Conns[0].ID, more[i].Conn)
	}
}

// Guidepost refers to posts.
type Guidepost struct {
	actorrep.Base
	Near actorrep.Ref[*Post]               `net:""`
	Far  actorrep.Var[actorrep.Ref[*Post]] `net:""`
}

// TestRefsAreShownAsTheirActors: by the id that the list of actors has, in a Var too.
func TestRefsAreShownAsTheirActors(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Post", (*Post)(nil)))
	require.NoError(t, w.Register("Guidepost", (*Guidepost)(nil)))
	rec, err := flight.New(w, nil, flight.Config{})
	require.NoError(t, err)
	p, s := &Post{}, &Guidepost{}
	require.NoError(t, w.Spawn(p))
	require.NoError(t, w.Spawn(s))
	w.Step(20 * time.Millisecond)
	s.Near = actorrep.RefTo(p)
	s.Far.Set(s.Near)
	w.Step(40 * time.Millisecond)
	d, _ := read(t, rec.Take(), flight.View{})
	for _, part := range d.Actors[1].Parts {
		require.Equal(t, []any{"none", d.Actors[0].ID}, part.Of, part.Name)
	}
}
