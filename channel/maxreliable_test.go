package channel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestMaxReliable: a payload of MaxReliable bits is taken, and one of a bit more is ErrTooLarge, whichever of the bounds it meets.
func TestMaxReliable(t *testing.T) {
	met := map[string]bool{}
	for _, packet := range []int{256, 300, 1024, 8192} {
		for _, buffer := range []int{8, 16, 256, 1024} {
			for _, memory := range []int{256 << 10, 300 << 10, 400 << 10, 8 << 20} {
				for _, name := range []bunch.Name{bunch.Control, stubGame} {
					s := newStub(t, false, func(c *Config) {
						c.Protocol.SequenceBits, c.ReliableBuffer, c.Protocol.MaxPacket, c.MaxMemory = 11, buffer, packet, memory
					})
					ch := s.open(name)
					most := ch.MaxReliable()
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, most/8+1), Bits: most + 1, Reliable: true})
					require.ErrorIs(t, err, ErrTooLarge, "packets of %d, a buffer of %d, %d bytes of memory", packet, buffer, memory)
					if bound := "payload"; most < bunch.MaxPayload*8 {
						if bound = "memory"; ch.memoryFor(most + 1) {
							bound = "buffer"
						}
						met[bound] = true
					} else {
						met[bound] = true
					}
					_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, (most+7)/8), Bits: most, Reliable: true})
					require.NoError(t, err, "packets of %d, a buffer of %d, %d bytes of memory: %d bits", packet, buffer, memory, most)
				}
			}
		}
	}
	require.Len(t, met, 3, "each bound")
}
