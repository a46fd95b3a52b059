package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
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

// copied is a hand whose client repeats bunches, and what rides again in its next packet.
func newCopied(t *testing.T, edit func(c *Config)) (h *hand, next func() uint64) {
	h = newHand(t, func(i int, c *Config) {
		if c.NetSpeed = 10_000_000; i == 0 {
			edit(c)
		}
	})
	return h, func() uint64 {
		before := h.conns[0].Counters.Copies
		h.tick(testTick)
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte("new"), NoMerge: true})
		require.NoError(t, err)
		h.conns[0].FlushWritten(h.now)
		return h.conns[0].Counters.Copies - before
	}
}

// reliable writes n reliable bunches of so many bits.
func (h *hand) reliable(n, bits int) {
	for range n {
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, (bits+7)/8), Bits: bits, Reliable: true, NoMerge: true})
		require.NoError(h.t, err)
	}
}

// TestCopiesComeFromTheLastSendTimes: all packets of a moment count as one; what couldn't ride in time is left to the naks. None rides
// above the bandwidth.
func TestCopiesComeFromTheLastSendTimes(t *testing.T) {
	for _, late := range []bool{false, true} {
		h, next := newCopied(t, func(c *Config) { c.Redundancy.Copies, c.KeepAlive = 1, 30*time.Second })
		c := h.conns[0]
		for range 2 { // two packets at the same time
			h.reliable(1, 8)
			c.FlushWritten(h.now)
		}
		if late {
			g := h.shut(time.Hour)
			require.Zero(t, next())
			g.budget = 1000
			require.Zero(t, next(), "two send times ago")
		} else {
			require.EqualValues(t, 2, next())
			require.Zero(t, next(), "they rode once")
		}
	}
}

// TestCopiesTakeBoundedWork: a packet looks at sixty-four bunches at most.
func TestCopiesTakeBoundedWork(t *testing.T) {
	h, next := newCopied(t, func(c *Config) { c.Redundancy.Copies = 1 })
	h.reliable(maxRepeatScan+9, 8)
	h.conns[0].FlushWritten(h.now)
	require.EqualValues(t, maxRepeatScan, next())
}

// TestLargestCopy: a payload of MaxBits is repeated, and none that is larger.
func TestLargestCopy(t *testing.T) {
	h, next := newCopied(t, func(c *Config) { c.Redundancy = Redundancy{Copies: 1, MaxBits: 77} })
	h.reliable(1, 77)
	h.conns[0].FlushWritten(h.now)
	require.EqualValues(t, 1, next())
	h.reliable(1, 78)
	h.conns[0].FlushWritten(h.now)
	require.Zero(t, next())
}

// TestCopiesOfAnOpen: a packet with a copy of a bunch whose channel the peer may refuse is known as one. Copies are traced as other bunches are.
func TestCopiesOfAnOpen(t *testing.T) {
	var sent recording
	h, _ := newCopied(t, func(c *Config) { c.Redundancy.Copies, c.Trace = 1, &sent })
	c := h.conns[0]
	ch, err := c.Open(testName, channel.Nop{})
	require.NoError(t, err)
	for _, ch := range []*channel.Channel{ch, h.chs[0]} {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
		require.NoError(t, err)
		c.FlushWritten(h.now)
		sent = recording{}
		copies := c.Counters.Copies
		h.tick(testTick)
		require.Equal(t, copies+1, c.Counters.Copies)
		require.True(t, c.newest().reliable)
		require.Equal(t, ch != h.chs[0], c.newest().opening)
		bunches := sent.of(nettrace.BunchSent)
		require.Len(t, bunches, 1)
		require.Equal(t, ch.Index(), bunches[0].ChIndex)
		require.Equal(t, c.notify.OutID()-1, bunches[0].PacketID)
		for range 3 {
			h.exchange()
		}
	}
}

// TestOneCopyInAPacket: a bunch that rode in several packets rides once in the next, and in one packet of each moment.
func TestOneCopyInAPacket(t *testing.T) {
	h, next := newCopied(t, func(c *Config) { c.Redundancy.Copies = 5 })
	c := h.conns[0]
	h.reliable(1, 8)
	c.FlushWritten(h.now)
	for range 3 {
		require.EqualValues(t, 1, next())
		before := c.Counters.Copies
		h.packet(0, false)
		require.Equal(t, before, c.Counters.Copies, "at the same moment")
	}
}

// TestCopiesOfASmallWindow: large bunches have all their copies, too, where acks of what the peer sends in each tick fill the window.
func TestCopiesOfASmallWindow(t *testing.T) {
	const copies = 2
	l := newLab(t, both(netsim.Settings{Lag: 150 * time.Millisecond}), 1, func(i int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.PacketWindow, c.NetSpeed = 16, 10_000_000
		if i == 0 {
			c.Redundancy.Copies = copies
		}
	})
	l.tick = 5 * time.Millisecond
	l.join()
	ch, back := l.open(0), l.open(1)
	_, err := back.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	n, sent, before := 0, uint64(0), l.conns[0].Counters.Copies
	l.run(10*time.Second, func() {
		if n++; n%20 == 0 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
			require.NoError(t, err)
			sent++
		}
		_, _ = back.SendBunch(&bunch.Out{Data: []byte{2}})
	})
	require.Greater(t, l.conns[0].Counters.Copies-before, copies*sent*19/20)
}
