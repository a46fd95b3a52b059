package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestIDs: ids of any gaps arrive, in the bits that the format says, one written after another.
func TestIDs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 14))
	const n = 20_000
	type record struct {
		gap   uint32
		plain bool
	}
	var sent []record
	w, plainly := bitio.NewWriter(make([]byte, 8*n)), bitio.NewWriter(make([]byte, 8*n))
	to, last := uint32(1), uint32(1)
	for range n {
		r := record{rng.Uint32() >> rng.IntN(32), rng.IntN(2) == 0}
		if len(sent) > 0 && rng.IntN(3) == 0 {
			r.gap = sent[len(sent)-1].gap
		}
		sent = append(sent, r)
		WriteID(w, r.gap, &to, r.plain)

		if plainly.WriteBool(r.gap == last && r.plain); r.gap == last && r.plain {
			continue
		}
		if plainly.WriteBool(r.plain); !r.plain {
			plainly.WriteBool(r.gap == last)
		}
		if r.gap == last && !r.plain {
			continue
		}
		for rest := r.gap; ; {
			plainly.WriteBits(uint64(rest), idGroup)
			rest >>= idGroup
			if plainly.WriteBool(rest != 0); rest == 0 {
				break
			}
		}
		last = r.gap
	}
	require.NoError(t, w.Err())
	require.Equal(t, plainly.Len(), w.Len())
	require.Equal(t, plainly.Bytes(), w.Bytes())
	in, from := bitio.NewReader(w.Bytes(), w.Len()), uint32(1)
	for i, r := range sent {
		gap, plain := ReadID(in, &from)
		require.Equal(t, r, record{gap, plain}, "%d", i)
	}
	require.NoError(t, in.Err())
	require.Zero(t, in.Remaining())
}
