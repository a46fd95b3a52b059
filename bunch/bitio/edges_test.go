package bitio_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestLongCopies compares copies of some hundred bits, from and to every bit of a byte, with copies bit by bit. Both buffers end with the last bit.
func TestLongCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	all := make([]byte, 160)
	for i := range all {
		all[i] = byte(rng.Uint32())
	}
	bit := func(p []byte, i int) byte { return p[i>>3] >> (i & 7) & 1 }
	for from := range 8 {
		for to := range 8 {
			for _, n := range []int{63, 64, 65, 72, 255, 256, 257, 264, 272, 511, 600, 1000, 1200} {
				src := all[:(from+n+7)/8]
				w := bitio.NewWriter(make([]byte, (to+n+7)/8))
				w.WriteBits(0, to)
				w.WriteBitsFrom(src, from, n)
				require.NoError(t, w.Err())
				r := bitio.NewReader(w.Bytes(), w.Len())
				r.Skip(to)
				dst := make([]byte, (n+7)/8)
				r.ReadBitsTo(dst, n)
				require.NoError(t, r.Err())
				for i := range n {
					if got := bit(w.Bytes(), to+i); got != bit(src, from+i) {
						t.Fatalf("written from bit %d to %d: bit %d of %d is %d", from, to, i, n, got)
					}
					if got := bit(dst, i); got != bit(src, from+i) {
						t.Fatalf("read back from bit %d: bit %d of %d is %d", to, i, n, got)
					}
				}
			}
		}
	}
}

// TestEmptyAndWholeSub checks readers of nothing and of all that is left.
func TestEmptyAndWholeSub(t *testing.T) {
	r := bitio.NewReader([]byte{0xa5, 0x5a}, 16)
	empty := r.Sub(0)
	require.NoError(t, empty.Err())
	require.Zero(t, empty.Remaining())
	whole := r.Sub(16)
	require.NoError(t, whole.Err())
	require.EqualValues(t, 0x5aa5, whole.ReadBits(16))
	require.NoError(t, r.Err())
}

// TestShortReadIsZero checks that a value of which the last bit is missing is zero, not the bits that were there.
func TestShortReadIsZero(t *testing.T) {
	r := bitio.NewReader([]byte{0b011}, 2)
	require.Zero(t, r.ReadInt(8))
	require.ErrorIs(t, r.Err(), bitio.ErrShort)
}

// TestFirstBeyondASCII checks the first character that isn't written in 8 bits, and the last that is.
func TestFirstBeyondASCII(t *testing.T) {
	for s, bits := range map[string]int{"\x7f": 32 + 16, "\u0080": 32 + 32} {
		w := bitio.NewWriter(make([]byte, 32))
		w.WriteString(s)
		require.Equal(t, bits, w.Len(), "%q", s)
		r := bitio.NewReader(w.Bytes(), w.Len())
		require.Equal(t, s, r.ReadString(10))
	}
}
