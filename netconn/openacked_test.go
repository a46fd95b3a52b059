package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// acked notes what its channel says when a bunch comes.
type acked struct {
	channel.Nop
	said []bool
}

func (a *acked) ReceivedBunch(ch *channel.Channel, _ *bunch.In) {
	a.said = append(a.said, ch.OpenAcked())
}

// TestWhoSpeaksHasTheChannel: a bunch of the peer's that is taken before its packet's turn, and so before the ack in that packet, shows
// that the peer has the channel.
func TestWhoSpeaksHasTheChannel(t *testing.T) {
	h := newHand(t, func(_ int, c *Config) { c.ReorderWindow = time.Second })
	var a acked
	ch, err := h.conns[0].Open(testName, &a)
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true})
	require.NoError(t, err)
	h.conns[0].FlushWritten(h.now)
	h.deliver(0)
	require.False(t, ch.OpenAcked())
	h.packet(1, false) // it is late
	h.give(1, h.packet(1, true))
	require.Equal(t, []bool{true}, a.said)
}

// TestSplitOpens: a channel whose first bunch takes several packets isn't there before the last of them is.
func TestSplitOpens(t *testing.T) {
	h := newHand(t, nil)
	ch, err := h.conns[0].Open(testName, channel.Nop{})
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 5000), Reliable: true})
	require.NoError(t, err)
	h.conns[0].FlushWritten(h.now)
	there := func() bool { return h.chs[1].Index() == ch.Index() } // it was accepted
	parts, early := ch.NumOutRec(), 0                              // some are acked, and the peer hasn't the channel
	for step := 0; ch.NumOutRec() > 0; step++ {
		require.Less(t, step, 100)
		if step == 0 {
			require.Greater(t, len(h.sent[0]), 2)
			h.sent[0] = h.sent[0][:1] // the others are lost
		}
		h.exchange()
		require.False(t, ch.OpenAcked() && !there())
		if !there() && ch.NumOutRec() < parts {
			early++
		}
	}
	require.True(t, ch.OpenAcked())
	require.NotZero(t, early)
}
