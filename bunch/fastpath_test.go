package bunch

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestFastPathIsTaken checks that headers written fast are read fast, that both are of simple headers only, that nothing of a
// header that was there before stays, and the sizes around those that fit 64 bits.
func TestFastPathIsTaken(t *testing.T) {
	const seed = 6
	rng := rand.New(rand.NewPCG(seed, 1))
	edges := []uint32{0, 1, 127, 128, 300, fastPacked - 1, fastPacked, 1 << 20}
	for _, size := range []int{1024, 8192, 1200} {
		p := Protocol{MaxPacket: size}
		edge := size*8 - 1<<(bits.Len(uint(size*8-1))-1) // from here on the highest bit of the length isn't there
		fast := 0
		for range 2000 {
			h := Header{ChIndex: edges[rng.IntN(len(edges))], Reliable: rng.IntN(2) == 0, ReplicationPaused: rng.IntN(2) == 0,
				HasPackageMapExports: rng.IntN(2) == 0, HasMustBeMappedGUIDs: rng.IntN(2) == 0, Partial: rng.IntN(8) == 0, Open: rng.IntN(8) == 0,
				Bits: []int{0, 1, 4096, size*8 - 1, edge - 1, edge}[rng.IntN(6)]}
			p.CustomExportsFinal = rng.IntN(2) == 0
			if h.Reliable {
				h.WireSeq = uint16(rng.UintN(1024))
			}
			if h.Reliable || h.Open {
				h.Name.Index = edges[rng.IntN(len(edges))]
			}
			packed := func(v uint32) int { return bitio.PackedBits(uint64(v)) }
			n := 6 + packed(h.ChIndex) + p.LengthBits(h.Bits)
			if h.Reliable {
				n += 11 + packed(h.Name.Index)
			}
			if h.Partial {
				n += 2
				h.PartialInitial, h.PartialFinal = rng.IntN(2) == 0, rng.IntN(2) == 0
				if p.CustomExportsFinal {
					n++
					h.PartialCustomExportsFinal = rng.IntN(2) == 0
				}
			}
			w := bitio.NewWriter(make([]byte, 8400))
			wrote := p.writeFast(w, &h)
			simple := !h.Open && h.ChIndex < fastPacked && (!h.Reliable || h.Name.Index < fastPacked) && n <= 64
			require.Equal(t, simple, wrote, "seed %d, %+v of %d bits", seed, h, n)
			if !wrote {
				require.Zero(t, w.Len())
				p.writeSlow(w, &h)
			} else {
				fast++
				slow := bitio.NewWriter(make([]byte, 8400))
				p.writeSlow(slow, &h)
				require.Equal(t, slow.Bytes(), w.Bytes())
			}
			behind := []byte{0, 0xff}[rng.IntN(2)]
			w.WriteBitsFrom(bytes.Repeat([]byte{behind}, 8192), 0, h.Bits)
			w.WriteUint64(-uint64(behind & 1)) // what follows it in the packet
			got := Header{CloseReason: TearOff, Close: true, PartialFinal: true, WireSeq: 77, Name: Name{Text: "before"}, Bits: 99}
			r := bitio.NewReader(w.Bytes(), w.Len())
			require.NoError(t, p.Read(r, &got, new(bitio.Reader)))
			require.Equal(t, h, got)
			require.Equal(t, 64, r.Remaining(), "seed %d, %+v", seed, h)
			got = Header{}
			require.Equal(t, wrote, p.readFast(bitio.NewReader(w.Bytes(), w.Len()), &got), "seed %d, %+v", seed, h)
		}
		require.Greater(t, fast, 300, "packets of %d", size)
	}
	w := bitio.NewWriter(make([]byte, 100))
	p := Protocol{MaxPacket: 1024}
	require.False(t, p.writeFast(w, &Header{Bits: 8192}), "too long for its field")
	require.False(t, p.writeFast(w, &Header{Reliable: true, Name: Name{Text: "text"}}))
}

// TestTextNamesAreRead: a header whose name is text isn't taken for one with a number, whatever the text.
func TestTextNamesAreRead(t *testing.T) {
	p := Protocol{MaxPacket: 1024}
	for _, text := range []string{"A", "\x7f", "Actor", "a name of some length"} {
		for _, number := range []int32{0, 1, 1 << 30} {
			h := Header{ChIndex: 3, Reliable: true, WireSeq: 5, Name: Name{Text: text, Number: number}, Bits: 64}
			w := bitio.NewWriter(make([]byte, 200))
			p.WriteHeader(w, &h)
			w.WriteUint64(0)
			w.WriteUint64(0)
			var got Header
			require.NoError(t, p.Read(bitio.NewReader(w.Bytes(), w.Len()), &got, new(bitio.Reader)))
			require.Equal(t, h, got)
		}
	}
}
