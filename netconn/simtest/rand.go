package simtest

import (
	"math/bits"
	"math/rand/v2"
)

// Rand is randomness that is the same on every machine. What math/rand/v2 makes of a bound differs between
// machines of 32 and of 64 bits.
type Rand struct{ *rand.Rand }

// NewRand returns a source for a seed and a purpose.
func NewRand(seed, purpose uint64) Rand { return Rand{rand.New(rand.NewPCG(seed, purpose))} }

// IntN is from 0 to n-1. It panics when n isn't from 1 to 1<<32-1.
func (r Rand) IntN(n int) int { return int(r.Uint32N(uint32(n))) }

// Int64N is from 0 to n-1, ever so slightly uneven. It panics when n is below 1.
func (r Rand) Int64N(n int64) int64 {
	if n < 1 {
		panic("simtest: Int64N needs a bound above 0")
	}
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int64(hi)
}
