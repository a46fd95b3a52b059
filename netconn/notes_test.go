package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history"
)

// TestSettledNotesAreForgotten: what is settled names no channel any more, or a closed channel would stay in memory until the ring comes round.
func TestSettledNotesAreForgotten(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
	for range 20 {
		h.packet(0, false)
		h.give(0, h.packet(0, true))
	}
	for range 5 {
		h.exchange()
	}
	for i, c := range h.conns {
		require.Equal(t, c.noteHead, c.noteTail)
		for _, n := range c.notes {
			require.Equal(t, note{}, n, "end %d", i)
		}
	}
}

// TestNotesShrinkAmidLittleTraffic: the ring follows what is in flight, however much went through it.
func TestNotesShrinkAmidLittleTraffic(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
	for range 100 {
		h.packet(0, true)
	}
	c := h.conns[0]
	require.GreaterOrEqual(t, len(c.notes), 100)
	for range 30 * 20 {
		_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
		require.NoError(t, err)
		h.exchange()
	}
	require.LessOrEqual(t, len(c.notes), 2*smallRing)
}

// TestCarryingCountsPacketsWithBunches: packets without any, when they are acked, aren't among those that it counts.
func TestCarryingCountsPacketsWithBunches(t *testing.T) {
	h := newHand(t, nil)
	for i := range 200 {
		if i%40 == 0 {
			h.packet(0, true)
		}
		h.exchange()
		for _, c := range h.conns {
			with := 0
			for id := c.first; id < c.next; id++ {
				if c.packetAt(id).notes > 0 {
					with++
				}
			}
			require.Equal(t, with, c.carrying)
		}
	}
	require.Greater(t, h.conns[0].Counters.PacketsAcked, uint64(10))
}

// TestChannelsOfThePeerComeBack: what a channel of the peer's counts is free again once it is closed and no packet in flight names it.
func TestChannelsOfThePeerComeBack(t *testing.T) {
	h := newHand(t, nil)
	held := 0
	for i := range 10 {
		ch, err := h.conns[0].Open(testName, channel.Nop{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
		h.exchange()
		_, err = h.chs[1].SendBunch(&bunch.Out{Data: []byte("answer"), Reliable: true})
		require.NoError(t, err)
		for range 10 {
			h.exchange()
		}
		require.NoError(t, ch.Close(bunch.Destroyed))
		for range 10 {
			h.exchange()
		}
		if i == 0 {
			held = h.conns[1].Table().Held()
		}
	}
	require.Equal(t, held, h.conns[1].Table().Held())
}

// TestEndPacketSendsWhatIsThere: the packet at hand, and none without anything in it.
func TestEndPacketSendsWhatIsThere(t *testing.T) {
	h := newHand(t, nil)
	h.sent[0] = nil
	o := (*outlet)(h.conns[0])
	o.EndPacket()
	require.Empty(t, h.sent[0])
	_, err := h.chs[0].SendBunch(&bunch.Out{Data: []byte{1, 2, 3}})
	require.NoError(t, err)
	require.Empty(t, h.sent[0])
	o.EndPacket()
	require.Len(t, h.sent[0], 1)
	o.EndPacket()
	require.Len(t, h.sent[0], 1)
}

// counted is how many packets were in flight when a bunch came.
type counted struct {
	channel.Nop
	c                                *Conn
	outstanding, unsettled, inFlight int
}

func (n *counted) ReceivedBunch(*channel.Channel, *bunch.In) {
	n.outstanding, n.unsettled, n.inFlight = n.c.notify.Outstanding(), n.c.notify.Unsettled(), n.c.inFlight()
}

// TestInFlightWithinTheHistory: a window that the peer's history holds counts packets until the peer knows that their fate is known, a larger one until it is.
func TestInFlightWithinTheHistory(t *testing.T) {
	for window, settles := range map[int]bool{history.Bits: true, 2 * history.Bits: false} {
		h := newHand(t, func(_ int, c *Config) { c.Protocol.PacketWindow = window })
		n := &counted{c: h.conns[0]}
		ch, err := h.conns[0].Open(testName, n)
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
		require.NoError(t, err)
		h.exchange()
		for range 5 {
			h.give(0, h.packet(0, false))
		}
		h.give(1, h.packet(1, false))
		require.GreaterOrEqual(t, n.unsettled, n.outstanding+5, "amid the packet that acks them")
		if settles {
			require.Equal(t, n.unsettled, n.inFlight)
		} else {
			require.Equal(t, n.outstanding, n.inFlight)
		}
	}
}

// TestPatience: two round trips with four times their deviation, from a second to three.
func TestPatience(t *testing.T) {
	for _, v := range []struct{ smoothed, variance, want time.Duration }{
		{0, 0, time.Second}, {50 * time.Millisecond, 10 * time.Millisecond, time.Second}, {500 * time.Millisecond, 50 * time.Millisecond, 1400 * time.Millisecond}, {2 * time.Second, 0, 3 * time.Second},
	} {
		var c Conn
		c.rtt.smoothed, c.rtt.variance = v.smoothed, v.variance
		require.Equal(t, v.want, c.patience())
	}
}

// TestProbesProveANarrowPath: the more small packets arrived, those behind the probes among them, and the fewer were lost, the fewer probes are enough.
func TestProbesProveANarrowPath(t *testing.T) {
	for _, v := range []struct {
		acked, missed int
		proved        bool
	}{{4, 0, true}, {3, 0, false}, {13, 1, true}, {12, 1, false}, {49, 5, true}, {48, 5, false}, {200, 5, true}} {
		var p path
		p.lost(0, &sentPacket{bytes: 1000, reliable: true})
		for range v.acked {
			p.acked(0, &sentPacket{bytes: 500})
		}
		for range v.missed {
			p.lost(0, &sentPacket{bytes: 400})
		}
		for range narrowProbes {
			require.False(t, p.proved(narrowTime))
			p.lost(0, &sentPacket{bytes: 1000, probe: true})
			p.acked(0, &sentPacket{bytes: 38})
		}
		require.Equal(t, v.proved, p.proved(narrowTime), "%+v", v)
		require.False(t, p.proved(narrowTime-1))
	}
}

// TestRingsOfTwiceWhatTheyNeed stay as they are, larger ones are cut to twice the most that was in them.
func TestRingsOfTwiceWhatTheyNeed(t *testing.T) {
	for most, size := range map[int32]int{0: 8, 4: 8, 5: 16, 16: 32, 20: 64} {
		require.Equal(t, size, (&used{now: most}).size(0))
		require.Equal(t, size, (&used{before: most}).size(0))
	}
	h := newHand(t, nil)
	c := h.conns[0]
	for size, want := range map[int]int{8: 8, 16: 16, 32: 8} {
		c.resizePackets(size)
		c.resizeNotes(size)
		c.sentPackets.inFlight, c.noted = used{}, used{}
		c.shrink()
		require.Len(t, c.packets, want)
		require.Len(t, c.notes, want)
	}
}
