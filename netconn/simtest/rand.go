package simtest

import (
	"math/bits"
	"math/rand/v2"
)

// Rand is a source of randomness that gives the same numbers on every machine. The bounded functions of math/rand/v2 differ between 32-bit and
// 64-bit machines.
type Rand struct{ *rand.Rand }

// NewRand returns the source for a seed and a purpose.
func NewRand(seed, purpose uint64) Rand { return Rand{rand.New(rand.NewPCG(seed, purpose))} }

// IntN returns a number from 0 to n-1. It panics if n isn't from 1 to 1<<32-1.
func (r Rand) IntN(n int) int { return int(r.Uint32N(uint32(n))) }

// Int64N returns a number from 0 to n-1. The bias is at most n/2⁶³. It panics if n is below 1.
func (r Rand) Int64N(n int64) int64 {
	if n < 1 {
		panic("simtest: Int64N needs a bound above 0")
	}
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int64(hi)
}
