package mesh_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// neighbour is the client ID of the other server.
const neighbour = 100

func (s *server) other() *server { return s.c.servers[1-slices.Index(s.c.servers, s)] }

// cityGame is a server's ZoneGame: all that crosses the border is the player's runner.
type cityGame struct{ *server }

func (g cityGame) Make(string) mesh.Actor {
	r := &runner{}
	r.SetAlwaysRelevant(true)
	return r
}

func (g cityGame) Give(_ mesh.Actor, to string) ([]byte, bool) {
	if g.m.Plays(me) {
		_ = g.m.Travel(me, to)
	}
	return nil, false
}

func (cityGame) Take(mesh.Actor, []byte) error    { return mesh.ErrRefused }
func (cityGame) Call(mesh.Actor, string, []byte)  {}
func (cityGame) Undelivered(netguid.GUID, []byte) {}

func (s *server) bootZone() (err error) {
	s.zone, err = mesh.NewZone(mesh.ZoneConfig{ID: s.h.Name(), World: s.world, Game: cityGame{s}, Margin: 30, Hysteresis: 5, Key: [32]byte{9}, Rand: s.h.Secrets(),
		Table: mesh.Table{Epoch: 1, X: -100, Cell: 100, Columns: 2, Servers: []string{"server1", "server2"}},
		ToServer: func(to string, packet []byte) {
			packet = slices.Clone(packet)
			if s.c.rng.IntN(100) >= s.c.lose {
				s.c.w.At(s.c.w.Now()+5*time.Millisecond, func() { _ = s.other().zone.Receive(s.h.Name(), packet) })
			}
		}})
	return err
}

// tickZone steps the zone, and the connection to the other's border.
func (s *server) tickZone(now time.Time) error {
	b := s.border
	switch {
	case b == nil && s.other().driver == nil:
		return nil
	case b == nil:
		b = &end{}
		if err := b.init(actorrep.NewClient(actorrep.Config{}), func(*runner) keys { return keys{} }); err != nil {
			return err
		}
		var err error
		b.driver, err = driver.Dial("", driver.Config{Socket: s.h.Open(), Clock: s.h.Time, Rand: s.h.Secrets(), Channels: append(b.world.ChannelTypes(), mesh.ChannelType(nil)),
			Link: driver.Netcode{Token: s.c.token(s.other(), neighbour)}, Closed: func(_ *driver.Conn, r netconn.CloseResult) { s.c.t.Error("the border's connection has ended", r) }})
		if err != nil {
			return err
		}
		s.border = b
		s.zone.Mirror(s.other().h.Name(), b.world)
	}
	b.driver.TickDispatch(now)
	at := b.driver.Time(now)
	b.world.Step(at)
	s.zone.Step(at)
	b.driver.TickFlush(now)
	for a := range s.world.All {
		if _, ok := a.(*runner); ok {
			return nil
		}
	}
	s.c.blinks++
	return nil
}

// TestZoneCity: a player who walks over the border is played by the other server from then on, with its inputs, its prediction and its epoch; its runner is there on both
// servers at any time. Dancing within the hysteresis costs nothing.
func TestZoneCity(t *testing.T) {
	c := &city{t: t, shown: 1500 * time.Millisecond, zones: true, lose: 2}
	c.init(1, netsim.Settings{Lag: 50 * time.Millisecond, Loss: 2})
	c.begin()
	require.Equal(t, "server1", c.plays().h.Name())
	require.Zero(t, c.servers[0].m.Counters.Moved, "it dances at the border")
	c.blinks, c.client.worst = 0, 0
	n := 3
	if os.Getenv("CI") != "" && !testing.Short() {
		n = 10
	}
	for i := range n {
		from := c.plays()
		c.walk = int8(1 - 2*(i%2))
		for began := c.w.Now(); c.plays() != from.other() || c.client.drawn != from.other().h.Name(); {
			require.Less(t, c.w.Now()-began, 15*time.Second)
			c.run(frame)
		}
		own := c.plays().own
		require.True(t, c.plays().zone.Owns(own))
		require.EqualValues(t, i+2, own.Epoch)
		var mirrored *runner
		for range 60 {
			c.run(frame)
			mirrored, _ = from.world.Find(own.GUID()).(*runner)
			require.True(t, mirrored != nil && !from.zone.Owns(mirrored))
		}
		require.InDelta(t, own.X, mirrored.X, speed*0.2, "it goes on as a mirror")
		require.InDelta(t, own.X, c.client.shown[carts], speed*0.5)
	}
	p := c.client
	t.Logf("inputs %d, lost %d; missing in %d frames; longest way in a frame %.2f; standstill %v", len(c.taken), c.gaps(), p.gone, p.jump, p.worst)
	require.Zero(t, c.blinks)
	require.Zero(t, p.gone)
	require.Less(t, p.jump, speed*0.1)
	require.LessOrEqual(t, c.gaps(), 2)
}
