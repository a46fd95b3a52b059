package spectate_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/spectate"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// greedy is a client that asks to watch, leaves and asks again, ten times a second.
type greedy struct {
	h      *simtest.Host
	driver *driver.Driver
	conn   *driver.Conn
	ch     *channel.Channel
	asked  int
	frames int
	ended  bool
}

var spectating = channel.Type{Name: bunch.Name{Index: 291}, ClientOpen: true}

func (g *greedy) boot(h *simtest.Host) (simtest.Program, error) {
	g.h = h
	cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.PlainSalted{}, Timeout: time.Hour, Socket: h.Open(), Channels: []channel.Type{spectating}}
	cfg.Joined = func(c *driver.Conn) { g.conn = c }
	cfg.Closed = func(*driver.Conn, netconn.CloseResult) { g.ended = true }
	var err error
	g.driver, err = driver.Dial("10.0.0.1:7777", cfg)
	return g, err
}

// Tick is a frame of its own.
func (g *greedy) Tick(now time.Time) error {
	g.driver.TickDispatch(now)
	switch g.frames++; {
	case g.conn == nil || g.ended:
	case g.frames%6 == 0:
		if g.ch != nil {
			_ = g.ch.Close(bunch.Destroyed)
		}
	case g.frames%6 == 3:
		var err error
		if g.ch, err = g.conn.Open(spectating.Name, channel.Nop{}); err == nil {
			if _, err = g.ch.SendBunch(&bunch.Out{Data: []byte{0}, Reliable: true}); err == nil {
				g.asked++
			}
		}
	}
	g.driver.TickFlush(now)
	return nil
}

func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestGreedySpectator: a client that asks to watch again and again costs the server no more than another, also when it acks nothing that it is sent; the others watch on.
func TestGreedySpectator(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		a := &arena{t: t, cfg: spectate.RelayConfig{Delay: time.Second}}
		g := &greedy{}
		a.world = simtest.NewSimulation(3, func(h *simtest.Host) (simtest.Program, error) {
			if h.Name() == "greedy" {
				return g.boot(h)
			}
			return a.boot(h)
		})
		a.world.AddHost("server", true)
		a.add(netsim.Settings{}, 1)
		host := a.world.AddHost("greedy", false)
		require.NoError(t, host.SetNet(netsim.Settings{}, netsim.Settings{}))
		a.world.RunUntil(5 * time.Second)
		require.NotNil(t, g.conn)
		if deaf {
			require.NoError(t, host.SetNet(netsim.Settings{}, netsim.Settings{Loss: 100}))
		}
		before := heap()
		a.world.RunUntil(65 * time.Second)
		grown := int64(heap()) - int64(before)
		require.Nil(t, a.world.Failure())
		t.Logf("deaf %v: asked %d times, ended %v, %d spectators; the heap has grown by %d bytes", deaf, g.asked, g.ended, a.relay.Spectators(), grown)
		require.Greater(t, g.asked, 600)
		require.LessOrEqual(t, a.relay.Spectators(), 2)
		require.Less(t, grown, int64(2<<20))
		require.NoError(t, a.spectators[0].err)
		require.Nil(t, a.spectators[0].result)
		require.InDelta(t, 65-1, float64(a.spectators[0].clock.Count)/60, 4)
	}
}
