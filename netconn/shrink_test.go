package netconn

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func heapNow() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestIdleAgainIsSmallAgain: a connection that had thousands of packets in flight, lost some and got some late is as small as ever when it has been
// idle for a while.
func TestIdleAgainIsSmallAgain(t *testing.T) {
	const n = 8
	var labs [n]*lab
	var chs [n]*channel.Channel
	for i := range labs {
		labs[i] = newLab(t, both(netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 50 * time.Millisecond, Loss: 1}), uint64(i), func(_ int, c *Config) { c.NetSpeed = 100_000_000 })
		labs[i].control()
		labs[i].run(time.Second, nil)
		chs[i] = labs[i].open(0)
		_, err := chs[i].SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
		labs[i].run(20*time.Second, nil)
	}
	forget := func(l *lab, loss float64) { // what the networks and the lab keep isn't the connections'
		for j := range l.links {
			link, err := netsim.NewLink(netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 40*time.Millisecond + time.Duration(loss*1e7) + 1, Loss: loss}, 1)
			require.NoError(t, err)
			l.links[j], l.lat[j], l.rlat[j] = link, nil, nil
		}
	}
	for _, l := range labs {
		forget(l, 0)
	}
	idle := heapNow()
	for i, l := range labs {
		forget(l, 1)
		l.run(time.Second, func() {
			for range 200 {
				_, err := chs[i].SendBunch(&bunch.Out{Data: make([]byte, 700), NoMerge: true})
				require.NoError(t, err)
				if chs[i].Room() > 1 {
					_, err = chs[i].SendBunch(&bunch.Out{Data: make([]byte, 30), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
			}
		})
		require.GreaterOrEqual(t, len(l.conns[0].sentPackets.packets), 1024)
		require.Positive(t, len(l.conns[1].order.slots))
		l.run(20*time.Second, nil)
		require.Zero(t, l.conns[0].Table().Unacked())
		forget(l, 0)
		l.run(25*time.Second, nil)
		c := l.conns[0]
		require.LessOrEqual(t, len(c.sentPackets.packets), 2*smallRing)
		require.LessOrEqual(t, len(c.sentPackets.notes), 2*smallRing)
		require.Zero(t, len(l.conns[1].order.slots)+len(l.conns[0].order.slots), "%+v", l.conns[0].Counters)
	}
	for _, l := range labs {
		forget(l, 0)
	}
	more := (heapNow() - idle) / (2 * n)
	t.Logf("%d bytes more for each connection", more)
	require.Less(t, more, 1024) // a ring alone had 50,000
	runtime.KeepAlive(&chs)
}

// TestRingsKeepWhatComesAgain: what comes and goes every seven seconds allocates no ring anew.
func TestRingsKeepWhatComesAgain(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 40 * time.Millisecond}), 1, func(_ int, c *Config) { c.NetSpeed = 100_000_000 })
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	c := l.conns[0]
	burst := func() {
		for range 500 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 700), NoMerge: true, Reliable: c.Counters.PacketsSent == 0})
			require.NoError(t, err)
		}
	}
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	burst()
	l.run(time.Second, nil)
	packets, notes := &c.packets[0], &c.notes[0]
	for range 20 {
		l.run(7*time.Second, nil)
		burst()
	}
	require.Same(t, packets, &c.packets[0])
	require.Same(t, notes, &c.notes[0])
	l.run(25*time.Second, nil)
	require.Equal(t, smallRing, len(c.packets))
}

// TestShrinkKeepsWhatIsInFlight: rings that shrink while packets are in flight lose nothing.
func TestShrinkKeepsWhatIsInFlight(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.Protocol, c.NetSpeed, c.Timeout = Bunchnet(), 10_000_000, -1 })
	c := h.conns[0]
	for i := range 1000 {
		if p := h.packet(0, true); i < 990 {
			h.give(0, p)
		}
		if i%50 == 49 && i < 990 {
			h.tick(time.Millisecond)
			h.deliver(1)
		}
	}
	require.Positive(t, c.notify.Outstanding())
	inFlight := c.notify.Outstanding()
	require.GreaterOrEqual(t, len(c.packets), 64)
	for range 3 {
		c.shrink()
	}
	require.Less(t, len(c.packets), 8*inFlight)
	require.EqualValues(t, inFlight, c.next-c.first)
	for range 40 {
		h.exchange()
	}
	require.Zero(t, c.Table().Unacked())
	require.Zero(t, c.notify.Outstanding())
	for range 3 {
		c.shrink()
	}
	require.Equal(t, smallRing, len(c.packets))
	require.EqualValues(t, c.next-1, c.notify.OutID()-1)
	require.Positive(t, c.newest().at)
	require.False(t, c.Closed())
}

// TestOrderCacheIsForgotten: after a period in which no packet was held back, and none is now.
func TestOrderCacheIsForgotten(t *testing.T) {
	h := newHand(t, nil)
	c := h.conns[1]
	c.enableOrderCache()
	o := &c.order
	o.held = 1
	for range 3 {
		o.shrink(5)
		require.NotNil(t, o.slots)
	}
	o.held = 0
	o.shrink(6)
	require.NotNil(t, o.slots, "one was held in this period")
	o.shrink(6)
	require.Nil(t, o.slots)
}
