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
