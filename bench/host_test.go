package bench

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// hostActor is what a host's player sees.
type hostActor struct {
	actorrep.Base
	X, Y float64 `net:"q=0.01"`
}

// hosted is a server with actors and a guest, and with the host's player in memory or without.
type hosted struct {
	server  *driver.Driver
	world   *actorrep.World
	players []hostPlayer
	now     time.Time
}

type hostPlayer struct {
	driver *driver.Driver
	world  *actorrep.World
}

func newHosted(tb testing.TB, host bool, actors int) *hosted {
	h := &hosted{now: time.Unix(1e9, 0), world: actorrep.NewServer(actorrep.Config{})}
	clock := func() time.Time { return h.now }
	s, guest := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	sockets := []udp.Socket{guest}
	if host {
		both, own := udp.WithLocal(s, netip.MustParseAddrPort("127.0.0.1:1"))
		s, sockets = both, append(sockets, own)
	}
	require.NoError(tb, h.world.Register("Actor", (*hostActor)(nil)))
	for range actors {
		require.NoError(tb, h.world.Spawn(&hostActor{}))
	}
	var err error
	h.server, err = driver.Listen("", driver.Config{Clock: clock, Socket: s, Channels: h.world.ChannelTypes(), Joined: func(c *driver.Conn) { h.world.AddConn(c) }})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, h.server.Close()) })
	for _, socket := range sockets {
		p := hostPlayer{world: actorrep.NewClient(actorrep.Config{})}
		require.NoError(tb, p.world.Register("Actor", (*hostActor)(nil)))
		p.driver, err = driver.Dial("127.0.0.1:7777", driver.Config{Clock: clock, Socket: socket, Channels: p.world.ChannelTypes()})
		require.NoError(tb, err)
		tb.Cleanup(func() { require.NoError(tb, p.driver.Close()) })
		h.players = append(h.players, p)
	}
	for range 600 {
		h.tick()
	}
	for _, p := range h.players {
		require.Equal(tb, actors, p.world.Len())
	}
	return h
}

// tick is a frame of the game, 1/60 s.
func (h *hosted) tick() {
	h.now = h.now.Add(time.Second / 60)
	for _, p := range h.players {
		p.driver.TickDispatch(h.now)
		p.world.Step(p.driver.Time(h.now))
		p.driver.TickFlush(h.now)
	}
	h.server.TickDispatch(h.now)
	h.world.Step(h.server.Time(h.now))
	h.server.TickFlush(h.now)
}

// TestHostedAllocs: the host's own connection allocates nothing once it runs.
func TestHostedAllocs(t *testing.T) {
	h := newHosted(t, true, 100)
	require.Zero(t, testing.AllocsPerRun(600, h.tick))
}

// BenchmarkHost is what a host's own player costs a tick when nothing happens, besides what the game costs without: both ends of the connection,
// its part of the server's world, and the client's.
func BenchmarkHost(b *testing.B) {
	for _, actors := range []int{0, 100} {
		b.Run(fmt.Sprintf("%d actors in sight", actors), func(b *testing.B) {
			alone, with := newHosted(b, false, actors), newHosted(b, true, actors)
			var spent [2]time.Duration
			for b.Loop() {
				for i, h := range []*hosted{alone, with} {
					begin := time.Now()
					for range 60 {
						h.tick()
					}
					spent[i] += time.Since(begin)
				}
			}
			b.ReportMetric(float64((spent[1]-spent[0]).Nanoseconds())/60/float64(b.N), "ns/tick-more")
			b.ReportMetric(0, "ns/op")
		})
	}
}
