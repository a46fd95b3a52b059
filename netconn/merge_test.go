package netconn

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestMergeFillsPackets merges small bunches into one a packet, whatever the packet's size: the width of
// the length differs within one when 8*MaxPacket is no power of two.
func TestMergeFillsPackets(t *testing.T) {
	for _, maxPacket := range []int{0, 1200, 1400, 2048} {
		for _, size := range []int{7, 32, 100} {
			t.Run(fmt.Sprintf("%d B in %d", size, maxPacket), func(t *testing.T) {
				var h collector
				p := newPair(t, 1, network{}, func(_ int, c *Config) {
					c.Protocol = Bunchnet()
					c.Protocol.Bunch.MaxPacket = maxPacket
					c.Channels = testTypes(func(*channel.Channel) channel.Handler { return &h })
				})
				c := p.ends[0].conn
				ch, err := c.Open(bunch.Control, &h)
				require.NoError(t, err)
				var want []byte
				for i := range 2000 {
					m := message(i, size)
					_, err := ch.SendBunch(&bunch.Out{Data: m, Reliable: true})
					require.NoError(t, err)
					want = append(want, m...)
				}
				for range 100 {
					p.step()
				}
				var got []byte
				for _, b := range h.got {
					got = append(got, b...)
				}
				require.True(t, bytes.Equal(want, got), "%d of %d bytes", len(got), len(want))
				s := c.Stats()
				require.LessOrEqual(t, s.Bunches.Sent, 2*s.Packets.PacketsSent+1, "a large one, and a small one in the rest")
			})
		}
	}
}
