package netconn

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// hand is two connected ends between which packets go by hand: what end i sends lies in sent[i].
type hand struct {
	t     *testing.T
	now   time.Duration
	conns [2]*Conn
	chs   [2]*channel.Channel // at the client, and the server's of the same index
	sent  [2][][]byte
}

// named gives a Protocol of which a test set a few fields a name: it means the rest to be Unreal's.
func named(c *Config) {
	if c.Protocol != (Protocol{}) {
		c.Protocol.Name = cmp.Or(c.Protocol.Name, "edited")
	}
}

// bucketed gives a Config without a controller Unreal's bucket, which lets all through that the test says, whatever the path does with it.
func bucketed(c *Config) {
	if c.Controller == nil {
		c.NetSpeed = cmp.Or(c.NetSpeed, defaultNetSpeed)
	}
}

func newHand(t *testing.T, edit func(i int, c *Config)) *hand {
	h := &hand{t: t, now: time.Second}
	for i := range h.conns {
		cfg := Config{Server: i == 1, LowLevelSend: func(p []byte) { h.sent[i] = append(h.sent[i], append([]byte(nil), p...)) },
			Channels: testTypes(func(ch *channel.Channel) channel.Handler {
				if ch.Index() > 0 {
					h.chs[1] = ch
				}
				return channel.Nop{}
			})}
		if edit != nil {
			edit(i, &cfg)
			named(&cfg)
		}
		bucketed(&cfg)
		c, err := New(cfg, h.now, [2]uint16{9, 7}[i], [2]uint16{7, 9}[i])
		require.NoError(t, err)
		h.conns[i] = c
	}
	for i, name := range []bunch.Name{bunch.Control, testName} {
		ch, err := h.conns[0].Open(name, channel.Nop{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
		if i == 1 {
			h.chs[0] = ch
		}
	}
	for range 10 {
		h.exchange()
	}
	require.Zero(t, h.conns[0].Table().Unacked())
	return h
}

// tick moves the time on and ticks both ends.
func (h *hand) tick(d time.Duration) {
	h.now += d
	for _, c := range h.conns {
		c.Tick(h.now)
	}
}

// deliver hands over all that end i sent.
func (h *hand) deliver(i int) {
	sent := h.sent[i]
	h.sent[i] = nil
	for _, p := range sent {
		h.give(i, p)
	}
	h.conns[1-i].PostTickDispatch(h.now)
}

// give hands one packet of end i's to the other.
func (h *hand) give(i int, p []byte) { _ = h.conns[1-i].ReceivedPacket(h.now, p) }

// exchange is a tick of 50 ms in which all arrives.
func (h *hand) exchange() {
	h.tick(50 * time.Millisecond)
	h.deliver(0)
	h.deliver(1)
}

// packet has end i send a packet with a bunch, and returns it.
func (h *hand) packet(i int, reliable bool) []byte {
	before := len(h.sent[i])
	_, err := h.chs[i].SendBunch(&bunch.Out{Data: []byte{1, 2, 3}, Reliable: reliable, NoMerge: true})
	require.NoError(h.t, err)
	h.conns[i].FlushWritten(h.now)
	require.Len(h.t, h.sent[i], before+1)
	p := h.sent[i][before]
	h.sent[i] = h.sent[i][:before]
	return p
}

// TestHeaderIsOfTheMomentOfSending: a packet begun before another arrived acks that one, so no packet goes out for the ack alone.
func TestHeaderIsOfTheMomentOfSending(t *testing.T) {
	h := newHand(t, nil)
	p := h.packet(0, true)
	_, err := h.chs[1].SendBunch(&bunch.Out{Data: []byte("begun before")})
	require.NoError(t, err)
	require.NotZero(t, h.conns[1].out.Len())
	h.give(0, p)
	before := h.conns[1].Counters
	h.conns[1].Tick(h.now)
	require.Len(t, h.sent[1], 1)
	require.Equal(t, before.AckOnly, h.conns[1].Counters.AckOnly)
	h.deliver(1)
	require.Zero(t, h.conns[0].notify.Outstanding())
}

// TestNewsOfALossDoesNotWait: a delayed ack goes at once when the packet before was lost.
func TestNewsOfALossDoesNotWait(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.AckDelay, c.KeepAlive = 100*time.Millisecond, 30*time.Second })
	for range 5 {
		h.exchange()
	}
	h.give(0, h.packet(0, true))
	h.conns[1].Tick(h.now)
	require.Empty(t, h.sent[1], "nothing was lost: it may wait")
	at, _ := h.conns[1].NextDeadline()
	require.Equal(t, h.now+100*time.Millisecond, at)

	h.packet(0, true) // lost
	h.give(0, h.packet(0, true))
	at, _ = h.conns[1].NextDeadline()
	require.Equal(t, h.now, at)
	h.conns[1].Tick(h.now)
	require.Len(t, h.sent[1], 1)
	lost := h.conns[0].Counters.PacketsLost
	h.deliver(1)
	require.Equal(t, lost+1, h.conns[0].Counters.PacketsLost)
}

// TestWindowBoundsPacketsInFlight: with a window of 32, 28 packets with bunches are in flight at most; the four are for acks and the close.
func TestWindowBoundsPacketsInFlight(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.PacketWindow, c.NetSpeed, c.Timeout = 32, 10_000_000, -1
	})
	c := h.conns[0]
	for i := c.carrying; i < 100; i++ {
		require.Equal(t, i >= 28, c.bunchesFull(0), "%d in flight", c.notify.Outstanding())
		require.Equal(t, i < 28, (*outlet)(c).HasRoom(100))
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: make([]byte, 100), Reliable: true, NoMerge: true})
		require.NoError(t, err)
		c.FlushWritten(h.now)
		require.Equal(t, min(i+1, 28), c.carrying)
	}
	require.NotZero(t, c.Counters.WindowFull)
	h.now += 50 * time.Millisecond
	h.deliver(0)
	h.conns[1].Tick(h.now)
	waited := c.Table().Waiting()
	h.deliver(1)
	h.conns[0].Tick(h.now)
	require.Less(t, c.Table().Waiting(), waited, "acks make room")
}

// TestProbesBeginAnew: each silence of the peer's after a reliable bunch gets three probes, later and later, and an ack gives the next
// silence its own.
func TestProbesBeginAnew(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.KeepAlive, c.Timeout = time.Hour, -1 })
	c := h.conns[0]
	for round := range 3 {
		h.packet(0, true) // lost
		var gaps []time.Duration
		last := h.now
		for len(gaps) < maxProbes+3 && h.now-last < 30*time.Second {
			at, ok := c.probeAt()
			if ok {
				c.Tick(at - 1)
				require.Empty(t, h.sent[0], "too early")
				deadline, _ := c.NextDeadline()
				require.Equal(t, at, deadline)
			}
			h.now += 10 * time.Millisecond
			c.Tick(h.now)
			if len(h.sent[0]) > 0 {
				gaps, last, h.sent[0] = append(gaps, h.now-last), h.now, nil
			}
		}
		require.Len(t, gaps, maxProbes+3, "round %d", round)
		for _, gap := range gaps[maxProbes:] {
			require.InDelta(t, awaitedKeepAlive, gap, float64(10*time.Millisecond), "a keep-alive behind the probes")
		}
		for i := 1; i < maxProbes; i++ {
			require.InDelta(t, 2, float64(gaps[i])/float64(gaps[i-1]), 0.5, "%v", gaps)
		}
		require.Equal(t, maxProbes, c.flow.probes)
		p := h.packet(0, true)
		h.give(0, p)
		h.conns[1].Tick(h.now)
		h.deliver(1)
		for range 10 {
			h.exchange()
		}
		require.Zero(t, c.Table().Unacked())
		require.Zero(t, c.flow.probes)
	}
}

// TestHeldPacketsHaveADeadline: a packet held back for a late one is processed when the window is over, and NextDeadline says when.
func TestHeldPacketsHaveADeadline(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow, c.KeepAlive = 20*time.Millisecond, 30*time.Second })
	c := h.conns[1]
	c.enableOrderCache()
	for range 5 {
		h.exchange()
	}
	h.packet(0, false) // late, or lost
	h.give(0, h.packet(0, false))
	held, since := c.notify.InID(), h.now
	require.EqualValues(t, 1, c.Counters.Cached)
	at, ok := c.NextDeadline()
	require.True(t, ok)
	require.Equal(t, since+20*time.Millisecond, at)
	c.PostTickDispatch(at - 1)
	require.Equal(t, held, c.notify.InID())
	c.PostTickDispatch(at)
	require.Equal(t, held+2, c.notify.InID())
	require.EqualValues(t, 1, c.Counters.PacketsMissed)
}

// TestProbesCarryTheTail: a tail probe has the reliable bunches that wait for an ack, oldest first, those that were split
// too, as many as it has room for; so a lost last bunch costs a round trip and a half, not two and a half.
func TestProbesCarryTheTail(t *testing.T) {
	for _, size := range []int{20, 1000, 2000} {
		l := newLab(t, both(netsim.Settings{Lag: 50 * time.Millisecond}), 1, nil)
		l.fine = time.Millisecond
		l.control()
		ch := l.open(0)
		for i := range 300 { // so that the round trip is known
			l.step(nil)
			if i%20 == 0 {
				_, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, size), Reliable: true})
				require.NoError(t, err)
			}
		}
		l.run(time.Second, nil)
		before, s := len(l.rlat[1]), l.conns[0].Stats()
		parts, n := 1+size/1024, 0
		l.lose[0] = func([]byte) bool { n++; return n == parts } // the last part, all of most
		_, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, size), Reliable: true})
		require.NoError(t, err)
		l.run(2*time.Second, nil)
		require.Len(t, l.rlat[1], before+1)
		late := l.rlat[1][before]
		t.Logf("%d bytes: RTT %v and %v, came after %v", size, s.RTT, s.RTTVariance, late)
		require.Less(t, late, s.RTT*3/2+4*s.RTTVariance+3*testTick)
	}
}

// TestFirstRoundTripIsNoGuess: an empty packet's ack may wait for the peer's next packet, so what it measured is forgotten with the
// first packet that the peer owed an ack for.
func TestFirstRoundTripIsNoGuess(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: time.Millisecond}), 1, nil)
	l.fine = time.Millisecond
	l.control()
	l.run(2*time.Second, nil)
	guess := l.conns[1].Stats() // said nothing yet
	ch := l.open(1)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	s := l.conns[1].Stats()
	t.Logf("%v and %v while idle, %v and %v then", guess.RTT, guess.RTTVariance, s.RTT, s.RTTVariance)
	require.Greater(t, guess.RTT, 100*time.Millisecond)
	require.LessOrEqual(t, s.RTT, 2*testTick)
}

// TestRepeatedPacketIsNoLifeSign: an end that refuses packets until its acks are heard takes new ones as a sign of life, and what it had
// before, from whoever repeats it, for none.
func TestRepeatedPacketIsNoLifeSign(t *testing.T) {
	h := newHand(t, func(i int, c *Config) {
		c.Protocol = Bunchnet()
		c.Protocol.Notify.WaitForFlush = i == 1 // end 0 sends beyond the history
		if i == 1 {
			c.Protocol.PacketWindow = 256
		}
	})
	c := h.conns[1]
	old := h.packet(0, false)
	h.give(0, old)
	for i := 0; !c.notify.WaitingForFlush(); i++ { // its acks are lost
		require.Less(t, i, 1000)
		h.give(0, h.packet(0, false))
	}
	h.now += time.Second
	before := c.flow.lastReceive
	h.give(0, old)
	require.True(t, c.notify.WaitingForFlush())
	require.Equal(t, before, c.flow.lastReceive)
	h.give(0, h.packet(0, false))
	require.True(t, c.notify.WaitingForFlush())
	require.Equal(t, h.now, c.flow.lastReceive)
}

// TestPardonsAreBounded: of what a peer says it refused, as much says nothing of the path as it has acked, and mostPardoned besides.
func TestPardonsAreBounded(t *testing.T) {
	var r refusals
	require.True(t, r.pardon(mostPardoned-1))
	require.True(t, r.pardon(1))
	require.False(t, r.pardon(1))
	r.acked(&sentPacket{bytes: 100})
	require.False(t, r.pardon(101))
	require.True(t, r.pardon(100))
	require.False(t, r.pardon(1))
	r.acked(&sentPacket{bytes: 2 * mostPardoned})
	require.False(t, r.pardon(mostPardoned+1), "acks aren't saved up")
	require.True(t, r.pardon(mostPardoned))
}
