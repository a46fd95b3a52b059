package netconn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestNothingBehindTheCloseCounts: of a packet that closes channel 0 nothing behind the close is handed to a channel, also when its sender goes on as no honest peer does.
func TestNothingBehindTheCloseCounts(t *testing.T) {
	for _, behind := range []bool{false, true} {
		got := &bunchNotes{}
		h := newHand(t, func(_ int, c *Config) {
			c.Channels = testTypes(func(*channel.Channel) channel.Handler { return got })
		})
		before := len(got.packets)
		h.give(0, h.raw(0, func(c *Conn) {
			if !behind {
				c.appendBunch(&bunch.Header{ChIndex: h.chs[0].Index(), Bits: 8}, []byte{1})
			}
			require.NoError(t, c.channels.CloseControl())
			if behind {
				c.appendBunch(&bunch.Header{ChIndex: h.chs[0].Index(), Bits: 8}, []byte{1})
			}
		}))
		require.Equal(t, ClosedByPeer, h.conns[1].Result().Code)
		if behind {
			require.Len(t, got.packets, before)
		} else {
			require.Len(t, got.packets, before+1)
		}
	}
}
