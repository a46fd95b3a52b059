package travel_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/actorrep/travel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Tree is of one level, Hero goes along.
type Tree struct {
	actorrep.Base
	Map string `net:"cap=256"`
}

// Hero is a player's.
type Hero struct {
	actorrep.Base
	Name string `net:"cap=64"`
}

func register(w *actorrep.World) error {
	if err := w.Register("Tree", (*Tree)(nil)); err != nil {
		return err
	}
	return w.Register("Hero", (*Hero)(nil))
}

// trip is a server that travels and its clients, which take a while to load.
type trip struct {
	*rig.Rig
	t       *testing.T
	server  *travel.Server
	clients []*tourist
	arrived []string
	late    []*actorrep.Peer
	onLate  func()
}

// tourist is a client and what it saw.
type tourist struct {
	*rig.Line
	levels *travel.Client
	takes  int // steps to load
	left   int
	loads  []string
	saw    map[*actorrep.Base]bool
	never  bool // it never says that it is ready
}

func newTrip(t *testing.T, seed uint64, set netsim.Settings, timeout time.Duration) *trip {
	r := &trip{t: t}
	r.Rig = rig.New(t, seed, set, actorrep.Config{RelevantTimeout: -1}, func(w *actorrep.World) error {
		var err error
		r.server, err = travel.NewServer(w, travel.Config{Timeout: timeout,
			Stays: func(a actorrep.Actor) bool { _, is := a.(*Hero); return is },
			Late: func(p *actorrep.Peer) {
				if r.late = append(r.late, p); r.onLate != nil {
					r.onLate()
				}
			},
			Arrived: func(m string) { r.arrived = append(r.arrived, m) },
		})
		if err != nil {
			return err
		}
		return register(w)
	})
	return r
}

func (r *trip) join(takes int) *tourist {
	c := &tourist{takes: takes, saw: map[*actorrep.Base]bool{}}
	c.Line = r.Join(func(w *actorrep.World) error {
		var err error
		c.levels, err = travel.NewClient(w, func(m string) { c.loads, c.left = append(c.loads, m), c.takes })
		if err != nil {
			return err
		}
		return register(w)
	})
	r.clients = append(r.clients, c)
	hero := &Hero{Name: fmt.Sprint("hero ", len(r.clients))}
	require.NoError(r.t, r.Server.Spawn(hero))
	hero.SetOwner(c.Peer)
	return c
}

func (r *trip) leave(c *tourist) {
	r.Server.RemoveConn(c.Peer)
	r.Lines = slices.DeleteFunc(r.Lines, func(l *rig.Line) bool { return l == c.Line })
	r.clients = slices.DeleteFunc(r.clients, func(o *tourist) bool { return o == c })
}

func (r *trip) to(m string) {
	require.NoError(r.t, r.server.To(m))
	for range 5 {
		require.NoError(r.t, r.Server.Spawn(&Tree{Map: m}))
	}
}

// step lets a tick pass, and sees to it that nobody has an actor of a level that it hasn't loaded.
func (r *trip) step() {
	r.server.Step(r.Now)
	r.Step()
	for _, c := range r.clients {
		c.levels.Step()
		if c.left > 0 && !c.never {
			if c.left--; c.left == 0 {
				c.levels.Ready(c.loads[len(c.loads)-1])
			}
		}
		loaded, ready := c.levels.Map()
		for a := range c.World.All {
			if tree, is := a.(*Tree); is && !c.saw[&tree.Base] {
				c.saw[&tree.Base] = true
				require.Contains(r.t, c.loads, tree.Map)
				if tree.Map == loaded {
					require.True(r.t, ready, "%s was seen while it was loaded", tree.Map)
				}
			}
		}
	}
}

func (r *trip) until(what string, f func() bool) {
	r.t.Helper()
	r.Await(what, r.step, f)
}

// sees is what a client has, in words.
func sees(w *actorrep.World) string {
	trees, heroes, m := 0, 0, ""
	for a := range w.All {
		switch a := a.(type) {
		case *Tree:
			trees++
			m = a.Map
		case *Hero:
			heroes++
		}
	}
	return fmt.Sprintf("%d trees of %s, %d heroes", trees, m, heroes)
}

func (r *trip) all(want string) {
	r.t.Helper()
	last := ""
	for range 30 * 60 {
		last = ""
		for i, c := range r.clients {
			if got := sees(c.World); got != want {
				last = fmt.Sprintf("client %d: %s", i, got)
			}
		}
		if last == "" {
			return
		}
		r.step()
	}
	r.t.Fatalf("want %s; %s", want, last)
}

// TestTravel: at 10 % loss, with one who joins and one who leaves on the way: nobody sees an actor of a level before having loaded it, heroes go
// along, and Arrived comes once, when all are ready.
func TestTravel(t *testing.T) {
	for seed := range uint64(20) {
		r := newTrip(t, seed, netsim.Settings{Loss: 10, LagMin: 30 * time.Millisecond, LagMax: 70 * time.Millisecond}, time.Minute)
		r.to("forest")
		a, b, c := r.join(3), r.join(20), r.join(50)
		r.all("5 trees of forest, 3 heroes")
		require.Equal(t, []string{"forest"}, r.arrived)
		heroes := map[*actorrep.Base]bool{}
		for x := range a.World.All {
			if h, is := x.(*Hero); is {
				heroes[&h.Base] = true
			}
		}

		r.to("desert")
		require.True(t, r.server.Traveling())
		r.until("a has loaded", func() bool { return r.server.IsReady(a.Peer) })
		require.False(t, r.server.IsReady(c.Peer), "it takes longer")
		d := r.join(30) // on the way
		r.leave(b)
		r.all("5 trees of desert, 4 heroes")
		r.until("arrived", func() bool { return len(r.arrived) == 2 })
		require.Equal(t, "desert", r.arrived[1])
		require.Equal(t, []string{"desert"}, d.loads)
		require.Equal(t, 0, len(r.late))

		r.to("sea") // and on at once: what was said of it counts for nothing
		for range 3 {
			r.step()
		}
		r.to("moon")
		r.all("5 trees of moon, 4 heroes")
		r.until("arrived", func() bool { return len(r.arrived) == 3 })
		e := r.join(1) // late
		r.all("5 trees of moon, 5 heroes")
		require.Equal(t, []string{"moon"}, e.loads)
		require.Equal(t, []string{"forest", "desert", "moon"}, r.arrived, "seed %d", seed)
		for x := range a.World.All {
			if h, is := x.(*Hero); is {
				delete(heroes, &h.Base)
			}
		}
		require.Equal(t, 0, len(heroes), "the same actors as before; the hero of who left is nobody's")
	}
}

// TestLate: who doesn't get ready holds nobody up for longer than Timeout, and sees nothing but what stays until it is.
func TestLate(t *testing.T) {
	r := newTrip(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, 5*time.Second)
	a, b := r.join(3), r.join(3)
	b.never = true
	r.to("forest")
	began := r.Now
	r.until("arrived", func() bool { return len(r.arrived) == 1 })
	require.GreaterOrEqual(t, r.Now-began, 5*time.Second)
	require.True(t, len(r.late) == 1 && r.late[0] == b.Peer)
	require.Equal(t, "5 trees of forest, 2 heroes", sees(a.World))
	require.Equal(t, "0 trees of , 2 heroes", sees(b.World))
	for x := range r.Server.All {
		if tree, is := x.(*Tree); is {
			require.Contains(t, r.Server.Explain(b.Peer, tree).Text, "Release")
		}
	}
	b.never, b.left = false, 1
	r.all("5 trees of forest, 2 heroes")
	require.Len(t, r.arrived, 1)
}

// TestBeforeTheFirstLevel: without a level nothing is held.
func TestBeforeTheFirstLevel(t *testing.T) {
	r := newTrip(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, 0)
	c := r.join(3)
	r.all("0 trees of , 1 heroes")
	require.Empty(t, c.loads)
	require.Empty(t, r.server.Map())
	r.to("forest")
	r.all("5 trees of forest, 1 heroes")
	require.Equal(t, "forest", r.server.Map())
}

// TestReplayOfTravel: a recording has the levels.
func TestReplayOfTravel(t *testing.T) {
	r := newTrip(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, 0)
	var file bytes.Buffer
	rec, err := replay.Record(r.Server, &file, replay.Config{})
	require.NoError(t, err)
	r.join(3)
	r.to("forest")
	r.all("5 trees of forest, 1 heroes")
	r.to("desert")
	r.all("5 trees of desert, 1 heroes")
	r.step()
	require.NoError(t, rec.Close())
	var loads []string
	w := actorrep.NewClient(actorrep.Config{})
	levels, err := travel.NewClient(w, func(m string) { loads = append(loads, m) })
	require.NoError(t, err)
	require.NoError(t, register(w))
	replay, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	require.NoError(t, replay.Play(w))
	for now := time.Duration(0); len(loads) < 2; now += rig.Tick {
		require.Less(t, now, time.Minute)
		require.NoError(t, replay.Step(now))
		levels.Step()
		if len(loads) > 0 {
			levels.Ready(loads[len(loads)-1])
		}
	}
	require.Equal(t, []string{"forest", "desert"}, loads)
	require.Equal(t, "5 trees of desert, 1 heroes", sees(w))
}

// TestSettings: what can't work is an error.
func TestSettings(t *testing.T) {
	server, client := actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
	_, err := travel.NewServer(client, travel.Config{})
	require.ErrorIs(t, err, travel.ErrConfig)
	_, err = travel.NewServer(server, travel.Config{Timeout: -1})
	require.ErrorIs(t, err, travel.ErrConfig)
	_, err = travel.NewClient(server, func(string) {})
	require.ErrorIs(t, err, travel.ErrConfig)
	_, err = travel.NewClient(client, nil)
	require.ErrorIs(t, err, travel.ErrConfig)
	s, err := travel.NewServer(server, travel.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, s.To(strings.Repeat("x", travel.MaxMap+1)), travel.ErrMap)
	require.ErrorIs(t, s.To("\xff"), travel.ErrMap)
	require.NoError(t, s.To(strings.Repeat("x", travel.MaxMap)))
}

// TestTimeoutBeginsWithStep: Timeout is what clients have: neither the time before the first Step, nor that which the server takes to load the level itself, counts.
func TestTimeoutBeginsWithStep(t *testing.T) {
	r := newTrip(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, 5*time.Second)
	r.Now = time.Hour
	a := r.join(3)
	r.to("forest")
	r.all("5 trees of forest, 1 heroes")
	r.to("desert")
	r.Now += 20 * time.Second // the server loads it
	r.all("5 trees of desert, 1 heroes")
	require.True(t, r.server.IsReady(a.Peer))
	require.Empty(t, r.late)
	require.Equal(t, []string{"forest", "desert"}, r.arrived)
}

// TestLateTravelsOn: a game that travels on when somebody is late isn't told of the others any more, as they are late for nothing now.
func TestLateTravelsOn(t *testing.T) {
	r := newTrip(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, 2*time.Second)
	r.onLate = func() {
		if len(r.late) == 1 {
			r.to("desert")
		}
	}
	a, b := r.join(3), r.join(3)
	a.never, b.never = true, true
	r.to("forest")
	r.until("late", func() bool { return len(r.late) > 0 })
	require.Len(t, r.late, 1)
	require.True(t, r.server.Traveling())
	a.never, b.never, a.left, b.left = false, false, 3, 3
	r.all("5 trees of desert, 2 heroes")
	r.until("arrived", func() bool { return len(r.arrived) > 0 })
	require.Equal(t, []string{"desert"}, r.arrived)
	require.Len(t, r.late, 1)
}

// TestReadyOfTheLevelBefore: a level that is loaded when the client is to load another one already doesn't make it ready for that.
func TestReadyOfTheLevelBefore(t *testing.T) {
	r := newTrip(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, time.Minute)
	c := r.join(3)
	c.never = true
	c.levels.Ready("forest") // before there is one
	r.to("forest")
	r.until("told", func() bool { return len(c.loads) == 1 })
	r.to("desert")
	r.until("told", func() bool { return len(c.loads) == 2 })
	c.levels.Ready("forest")
	for range 60 {
		r.step()
	}
	require.False(t, r.server.IsReady(c.Peer))
	require.True(t, r.server.Traveling())
	c.levels.Ready("desert")
	r.all("5 trees of desert, 1 heroes")
	require.True(t, r.server.IsReady(c.Peer))
}
