package coding

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/reedsolomon"
	"github.com/stretchr/testify/require"
)

// slowMultiply is the product by definition: of polynomials, then the remainder.
func slowMultiply(a, b uint8) uint8 {
	p := 0
	for i := range 8 {
		if b>>i&1 == 1 {
			p ^= int(a) << i
		}
	}
	for i := 14; i >= 8; i-- {
		if p>>i&1 == 1 {
			p ^= 0x11d << (i - 8)
		}
	}
	return uint8(p)
}

func TestInverses(t *testing.T) {
	for a := 1; a < 256; a++ {
		require.EqualValues(t, 1, slowMultiply(uint8(a), reedsolomon.Inv(uint8(a))))
	}
}

// TestBytesTimesACoefficient: sums of products by each coefficient and of all lengths, whichever of the two is longer, and products in place.
func TestBytesTimesACoefficient(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for c := range 256 {
		c := uint8(c)
		for range 4 {
			dst, src := randomBytes(rng, rng.IntN(300)), randomBytes(rng, rng.IntN(300))
			want := bytes.Clone(dst)
			for i := range min(len(dst), len(src)) {
				want[i] ^= slowMultiply(c, src[i])
			}
			addProduct(dst, src, c)
			require.Equal(t, want, dst)
			for i := range want {
				want[i] = slowMultiply(c, want[i])
			}
			scale(dst, c)
			require.Equal(t, want, dst)
		}
	}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = uint8(rng.Uint32())
	}
	return p
}
