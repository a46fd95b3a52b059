package netconn

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
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
					c.NetSpeed = 10_000_000
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

// bunchSizes is a trace sink that notes the payloads of the bunches that were sent.
type bunchSizes struct{ bits []uint32 }

func (s *bunchSizes) Trace(e *nettrace.Event) {
	if e.Kind == nettrace.BunchSent {
		s.bits = append(s.bits, e.Bits)
	}
}

// TestMergedKeepTheirCopies: while there are copies, small bunches aren't merged beyond the size that has any, in a packet or while they wait for the rate;
// without copies they are.
func TestMergedKeepTheirCopies(t *testing.T) {
	for _, r := range []Redundancy{{Copies: 2, MaxBits: 400}, {Copies: 2, Adaptive: true, MaxBits: 400}} {
		for _, speed := range []int{2000, 10_000_000} {
			sizes := &bunchSizes{}
			var h collector
			p := newPair(t, 1, network{delay: 20 * time.Millisecond}, func(i int, c *Config) {
				c.Channels = testTypes(func(*channel.Channel) channel.Handler { return &h })
				if c.NetSpeed = speed; i == 0 {
					c.Trace, c.Redundancy = sizes, r
				}
			})
			ch, err := p.ends[0].conn.Open(bunch.Control, &h)
			require.NoError(t, err)
			for i := range 200 {
				_, err := ch.SendBunch(&bunch.Out{Data: message(i, 16), Reliable: true})
				require.NoError(t, err)
			}
			for range 60 * 20 {
				p.step()
			}
			require.Equal(t, 200*16, len(bytes.Join(h.got, nil)))
			if most := slices.Max(sizes.bits); r.Adaptive {
				require.Greater(t, most, uint32(4000), "there is no loss, so there are no copies")
			} else {
				require.EqualValues(t, 384, most, "at %d bytes a second", speed)
				require.Greater(t, p.ends[0].conn.Counters.Copies, uint64(0))
			}
		}
	}
}

// TestEvenParts splits payloads into parts of one size, but for Unreal into full ones and a rest.
func TestEvenParts(t *testing.T) {
	for _, c := range []struct {
		protocol Protocol
		bytes    int
		want     []uint32
	}{
		{Bunchnet(), 2000, []uint32{667 * 8, 667 * 8, 666 * 8}},
		{Bunchnet(), 1000, []uint32{500 * 8, 500 * 8}},
		{Unreal51(), 1000, nil},
	} {
		sizes := &bunchSizes{}
		var h collector
		p := newPair(t, 1, network{}, func(i int, cfg *Config) {
			cfg.Protocol = c.protocol
			cfg.Channels = testTypes(func(*channel.Channel) channel.Handler { return &h })
			if i == 0 {
				cfg.Trace = sizes
			}
		})
		ch, err := p.ends[0].conn.Open(bunch.Control, &h)
		require.NoError(t, err)
		payload := bytes.Repeat([]byte{1, 2, 3, 4, 5}, c.bytes/5)
		_, err = ch.SendBunch(&bunch.Out{Data: payload, Reliable: true})
		require.NoError(t, err)
		for range 5 {
			p.step()
		}
		require.Equal(t, [][]byte{payload}, h.got)
		if c.want == nil {
			full := uint32(p.ends[0].conn.proto.MaxSingleBits() / 8 * 8)
			c.want = []uint32{full, uint32(c.bytes)*8 - full}
		}
		require.Equal(t, c.want, sizes.bits)
	}
}
