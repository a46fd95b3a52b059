package netconn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// lateClose is an end 0 that has closed, and an end 1 that took the close and whose ack of it was lost.
func lateClose(t *testing.T) *hand { return lateCloseWith(t, nil) }

func lateCloseWith(t *testing.T, edit func(i int, c *Config)) *hand {
	h := newHand(t, edit)
	h.conns[0].Close(h.now, "enough")
	h.conns[0].FlushWritten(h.now)
	h.deliver(0)
	require.True(t, h.conns[1].Closed())
	h.sent[1] = nil
	return h
}

// again is a packet with the close of channel 0 once more, and with what write adds.
func (h *hand) again(write func(c *Conn)) []byte {
	c := h.conns[0]
	c.startPacket()
	c.channels.HurryControl()
	if write != nil {
		write(c)
	}
	c.sendPacket(0, false)
	p := h.sent[0][len(h.sent[0])-1]
	h.sent[0] = nil
	return p
}

// TestLateCloseIsAcked: the answer acks the packet that came late, and the one who closes is done.
func TestLateCloseIsAcked(t *testing.T) {
	h := lateClose(t)
	late := h.conns[0].notify.OutID()
	h.give(0, h.again(nil))
	require.Len(t, h.sent[1], 1)
	var fate recording
	h.conns[0].SetTrace(&fate)
	h.deliver(1)
	require.Equal(t, ClosedByUs, h.conns[0].Result().Code)
	require.Zero(t, h.conns[0].Result().Unacked)
	acks := fate.of(nettrace.PacketAcked)
	require.Equal(t, late, acks[len(acks)-1].PacketID)
}

// TestDuplicateAfterTheEndIsNotAnswered: the answer to the first was sent.
func TestDuplicateAfterTheEndIsNotAnswered(t *testing.T) {
	h := lateClose(t)
	p := h.again(nil)
	h.give(0, p)
	h.give(0, p)
	require.Len(t, h.sent[1], 1)
}

// TestNothingNewIsAckedAfterTheEnd: a packet with anything besides what arrived before isn't acked, or its sender would believe that it
// was delivered. It isn't acked by a later answer either.
func TestNothingNewIsAckedAfterTheEnd(t *testing.T) {
	for name, write := range map[string]func(c *Conn){
		"a new reliable bunch": func(c *Conn) {
			c.appendBunch(&bunch.Header{ChIndex: 1, Reliable: true, Name: testName, WireSeq: 9, Bits: 8}, []byte{1}) // the open was 8
		},
		"an unreliable bunch": func(c *Conn) { c.appendBunch(&bunch.Header{ChIndex: 1, Bits: 8}, []byte{1}) },
		"half a bunch":        func(c *Conn) { c.out.WriteBits(1, 3) },
	} {
		h := lateClose(t)
		c := h.conns[0]
		fresh := c.notify.OutID()
		h.give(0, h.again(write))
		require.Empty(t, h.sent[1], name)
		h.give(0, h.again(nil))
		require.Len(t, h.sent[1], 1, name)
		var fate recording
		c.SetTrace(&fate)
		h.deliver(1)
		naks := fate.of(nettrace.PacketNak)
		require.Len(t, naks, 1, name)
		require.Equal(t, fresh, naks[0].PacketID, name)
	}
}

// TestTheLateCloseIsTraced: a packet that is acked after the end is traced as received, one that isn't is not.
func TestTheLateCloseIsTraced(t *testing.T) {
	h := lateClose(t)
	var seen recording
	h.conns[1].SetTrace(&seen)
	h.give(0, h.again(func(c *Conn) { c.out.WriteBits(1, 3) }))
	require.Empty(t, seen.of(nettrace.PacketReceived))
	late := h.conns[0].notify.OutID()
	h.give(0, h.again(nil))
	received := seen.of(nettrace.PacketReceived)
	require.Len(t, received, 1)
	require.Equal(t, late, received[0].PacketID)
}

// TestLateCloseWithATrailer: with coding, the packet that comes after the end may have a trailer or none.
func TestLateCloseWithATrailer(t *testing.T) {
	for _, trailer := range []bool{false, true} {
		h := lateCloseWith(t, func(_ int, c *Config) { c.Coding = Coding{Repairs: 1} })
		p := h.again(nil)
		if coding.Marked(p) {
			var ok bool
			p, _, ok = coding.Split(p)
			require.True(t, ok)
		}
		if trailer {
			p = coding.AppendEnd(p, 0, 0, 0, 0b10)
		}
		require.Equal(t, trailer, coding.Marked(p))
		h.sent[1] = nil
		h.give(0, p)
		require.Len(t, h.sent[1], 1, "trailer %v", trailer)
	}
}
