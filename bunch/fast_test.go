package bunch

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestFastPathIsTheSlowPath writes random headers both ways.
func TestFastPathIsTheSlowPath(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	fast := 0
	for i := range 20_000 {
		h := Header{ChIndex: rng.Uint32N(1 << rng.UintN(16)), ReplicationPaused: rng.IntN(2) == 0, Reliable: rng.IntN(2) == 0,
			HasPackageMapExports: rng.IntN(2) == 0, HasMustBeMappedGUIDs: rng.IntN(2) == 0, Partial: rng.IntN(4) == 0, Open: rng.IntN(8) == 0}
		if h.Reliable || h.Open {
			h.Name.Index = rng.Uint32N(1 << rng.UintN(16))
		}
		p := Protocol{SequenceBits: []uint8{0, 10, 11, 12, 16}[rng.IntN(5)], MaxPacket: []int{0, 1024, 700, 1200, 1400}[rng.IntN(5)], CustomExportsFinal: rng.IntN(2) == 0}
		if h.Partial {
			h.PartialInitial, h.PartialFinal, h.PartialCustomExportsFinal = rng.IntN(2) == 0, rng.IntN(2) == 0, p.CustomExportsFinal && rng.IntN(2) == 0
		}
		if h.Reliable {
			h.WireSeq = uint16(rng.UintN(uint(p.Sequences().Size())))
		}
		h.Bits = rng.IntN(1 << rng.IntN(13))
		h.Bits = min(h.Bits, p.PacketBytes()*8-1)
		data := make([]byte, 1024)
		w := bitio.NewWriter(make([]byte, 1200))
		w.WriteBits(0, i%9) // at every offset
		if p.writeFast(w, &h) {
			fast++
		}
		slow := bitio.NewWriter(make([]byte, 1200))
		slow.WriteBits(0, i%9)
		p.writeSlow(slow, &h)
		if w.Len() > i%9 {
			require.Equal(t, slow.Bytes(), w.Bytes(), "seed %d, %+v", seed, h)
		}
		slow.WriteBitsFrom(data, 0, h.Bits)
		var got Header
		r := bitio.NewReader(slow.Bytes(), slow.Len())
		r.Skip(i % 9)
		err := p.Read(r, &got, new(bitio.Reader))
		require.NoError(t, err)
		require.Equal(t, h, got, "seed %d", seed)
		require.Zero(t, r.Remaining())
	}
	require.Greater(t, fast, 5000)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8}, uint16(32))
	f.Add([]byte{0x10, 0x60, 0x01, 0x40, 1, 2, 3, 4, 5, 6, 7, 8}, uint16(96))
	f.Fuzz(func(t *testing.T, b []byte, bits uint16) {
		for _, p := range []Protocol{{}, {CustomExportsFinal: true}, {MaxPacket: 1200}} {
			r := bitio.NewReader(b, int(bits))
			for r.Remaining() > 0 {
				var h Header
				var payload bitio.Reader
				err := p.Read(r, &h, &payload)
				if err != nil {
					break
				}
				if payload.Remaining() != h.Bits {
					t.Fatalf("%d bits of payload, the header says %d", payload.Remaining(), h.Bits)
				}
			}
		}
	})
}

// FuzzAssembly joins arbitrary parts: bounded memory, no panic.
func FuzzAssembly(f *testing.F) {
	f.Add([]byte{1, 0, 0, 2, 1, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		var a Assembly
		for i := 0; i+2 < len(script); i += 3 {
			in := In{PacketID: int64(script[i+1])}
			in.Partial = true
			in.PartialInitial, in.PartialFinal, in.Reliable = script[i]&1 != 0, script[i]&2 != 0, script[i]&4 != 0
			in.HasPackageMapExports = script[i]&8 != 0
			in.ChSequence = int64(script[i+1])
			in.Bits = int(script[i+2]) * 29
			in.Data.Reset(make([]byte, (in.Bits+7)/8), in.Bits)
			if progress, err := a.Add(&in); err == nil && progress == Complete {
				if whole := a.Take(); whole.Bits != whole.Data.Remaining() {
					t.Fatal("a joined bunch with fewer bits than it says")
				}
			}
			if a.Cap() > 2*MaxPayload {
				t.Fatalf("%d bytes held", a.Cap())
			}
		}
	})
}
