package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestCopiesInTheirOwnPackets repeats what doesn't fit beside new bunches in a packet of its own, while
// the bandwidth allows it.
func TestCopiesInTheirOwnPackets(t *testing.T) {
	for _, netSpeed := range []int{1_000_000, 4_000} {
		f := newFlood(t, 1, network{delay: 100 * time.Millisecond}, func(c *Config) { c.Redundancy.Copies = 1; c.NetSpeed = netSpeed })
		f.received = -1000 // sizes differ from the flood's
		c := f.p.ends[0].conn
		for range 2 {
			_, err := f.ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
			require.NoError(t, err)
			f.p.step()
		}
		if netSpeed > 100_000 {
			require.EqualValues(t, 3, c.Counters.PacketsSent)
			require.EqualValues(t, 1, c.Counters.Copies)
		} else {
			require.EqualValues(t, 1, c.Counters.PacketsSent, "the second waits for its turn")
			require.Zero(t, c.Counters.Copies)
		}
	}
}

// TestNoCopiesOfParts leaves split payloads alone.
func TestNoCopiesOfParts(t *testing.T) {
	f := newFlood(t, 1, network{delay: 100 * time.Millisecond}, func(c *Config) { c.Redundancy.Copies = 2; c.NetSpeed = 1_000_000 })
	_, err := f.ch.SendBunch(&bunch.Out{Data: make([]byte, 3000), Reliable: true})
	require.NoError(t, err)
	for range 3 {
		f.p.step()
	}
	require.Zero(t, f.p.ends[0].conn.Counters.Copies)
}

// TestFirstCopyAtOnceAfterLoss answers a peer whose packet was lost in two packets.
func TestFirstCopyAtOnceAfterLoss(t *testing.T) {
	f := newFlood(t, 1, network{}, func(c *Config) { c.Redundancy.Copies = 2 })
	f.send(1)
	f.drain()
	echo := func() (packets, copies uint64) {
		c := f.p.ends[1].conn
		f.p.now += testTick
		for _, p := range f.p.ends[0].flying {
			require.NoError(t, c.ReceivedPacket(f.p.now, p.data))
		}
		f.p.ends[0].flying = nil
		before := c.Counters
		_, err := c.Channel(0).SendBunch(&bunch.Out{Data: message(0, 8), Reliable: true})
		require.NoError(t, err)
		c.Tick(f.p.now)
		return c.Counters.PacketsSent - before.PacketsSent, c.Counters.Copies - before.Copies
	}
	next := func() {
		f.send(1)
		f.p.ends[0].conn.Tick(f.p.now)
	}
	f.p.ends[0].flying = nil
	next()
	packets, copies := echo()
	require.EqualValues(t, 1, packets)
	require.Zero(t, copies)
	next()
	f.p.ends[0].flying = nil // lost
	next()
	packets, copies = echo()
	require.EqualValues(t, 2, packets)
	require.EqualValues(t, 3, copies, "the older bunch with the packet, and both in the other")
}

// TestTakeEarly delivers the reliable bunches of packets that are held back for a late one, once, and
// the rest in order.
func TestTakeEarly(t *testing.T) {
	var early, late []byte
	f := newFlood(t, 1, network{}, func(c *Config) { c.ReorderWindow = time.Second; c.Redundancy.Copies = 1 })
	f.send(1)
	f.drain()
	server := f.p.ends[1].conn
	server.enableOrderCache()
	send := func() []byte {
		f.send(1)
		f.p.now += testTick
		f.p.ends[0].flying = nil
		f.p.ends[0].conn.Tick(f.p.now)
		return f.p.ends[0].flying[0].data
	}
	late = send()
	early = send()
	had := f.received
	require.NoError(t, server.ReceivedPacket(f.p.now, early))
	server.PostTickDispatch(f.p.now)
	require.EqualValues(t, 1, server.Counters.Cached)
	require.Equal(t, had+2, f.received, "both, the lost one as a copy")
	require.NoError(t, server.ReceivedPacket(f.p.now, late))
	require.Equal(t, had+2, f.received)
	require.Zero(t, server.Counters.PacketsMissed, "nothing was lost")
	require.NotZero(t, server.Table().Counters.Duplicate)
}

// TestBurstsAskForMoreCopies estimates how long losses last.
func TestBurstsAskForMoreCopies(t *testing.T) {
	copies := func(lost func(i int) bool) int {
		c := &Conn{cfg: Config{Redundancy: Redundancy{Copies: 16, Adaptive: true}}}
		for i := range 5000 {
			c.rates.loss(lost(i))
		}
		return c.copies()
	}
	require.Zero(t, copies(func(int) bool { return false }))
	require.Equal(t, 2, copies(func(i int) bool { return i%100 == 0 }))
	require.Greater(t, copies(func(i int) bool { return i%100 < 4 }), 8)
}

// TestManyPacketsAskForMoreCopies: a loss among 600 packets a second delays ten times as many messages as among 60.
func TestManyPacketsAskForMoreCopies(t *testing.T) {
	copies := func(perSecond float64) int {
		c := &Conn{cfg: Config{Redundancy: Redundancy{Copies: 16, Adaptive: true}}}
		c.rates.figures.OutPackets = perSecond
		for i := range 5000 {
			c.rates.loss(i%200 == 100)
		}
		return c.copies()
	}
	require.Equal(t, 1, copies(0))
	require.Equal(t, 1, copies(60))
	require.Equal(t, 2, copies(600))
}

// TestAllocsCopies repeats bunches, holds packets back for late ones and takes theirs early, without
// allocating.
func TestAllocsCopies(t *testing.T) {
	h := &nullHandler{}
	var conns [2]*Conn
	var lines [2][8][]byte // packets on their way to each end, oldest at head
	var head, n [2]int
	for i := range conns {
		to := 1 - i
		c, err := New(Config{Server: i == 1, Channels: testTypes(func(*channel.Channel) channel.Handler { return h }),
			Redundancy: Redundancy{Copies: 2}, ReorderWindow: 50 * time.Millisecond, AckDelay: 25 * time.Millisecond, NetSpeed: 1_000_000,
			LowLevelSend: func(p []byte) {
				slot := &lines[to][(head[to]+n[to])%8]
				*slot = append((*slot)[:0], p...)
				n[to]++
			}}, 0, [2]uint16{9, 7}[i], [2]uint16{7, 9}[i])
		require.NoError(t, err)
		conns[i] = c
	}
	ch, err := conns[0].Open(bunch.Control, h)
	require.NoError(t, err)
	out := bunch.Out{Data: make([]byte, 60), Reliable: true, NoMerge: true}
	now, tick := time.Duration(0), 0
	take := func(i, back int) {
		at := (head[i] + back) % 8
		if err := conns[i].ReceivedPacket(now, lines[i][at]); err != nil {
			t.Error(err)
		}
	}
	step := func() {
		tick++
		now += testTick
		for i := range conns {
			for n[i] > 3 { // three ticks on their way
				if tick%10 == 0 {
					take(i, 1) // overtakes
				}
				if tick%17 != 0 {
					take(i, 0)
				}
				head[i] = (head[i] + 1) % 8
				n[i]--
			}
			conns[i].PostTickDispatch(now)
		}
		if _, err := ch.SendBunch(&out); err != nil {
			t.Fatalf("%v: %+v", err, conns[0].Stats())
		}
		conns[0].Tick(now)
		conns[1].Tick(now)
	}
	for range 2000 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(1, func() { // it rounds down: what is rare shows only in many steps
		for range 500 {
			step()
		}
	}))
	require.NotZero(t, conns[0].Counters.Copies)
	require.NotZero(t, conns[1].Counters.Cached)
	require.Greater(t, h.n, 2000)
}
