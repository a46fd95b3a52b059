package hostile

import "math/rand/v2"

// Dice takes decisions from bytes.
type Dice struct {
	b    []byte
	rare int
}

// NewDice returns dice that have so many bytes to go by. One decision in about rare, 16 or more, is plainly wrong.
func NewDice(b []byte, rare int) *Dice { return &Dice{b, max(rare, 16)} }

// Bytes is n bytes of a seed.
func Bytes(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// Refill gives the dice other bytes.
func (d *Dice) Refill(b []byte) { d.b = b }

// Over reports whether all bytes are used. What is decided from then on is always the same.
func (d *Dice) Over() bool { return len(d.b) == 0 }

// N is a number from 0 to below n, which is 256 at most.
func (d *Dice) N(n int) int {
	if len(d.b) == 0 {
		return 0
	}
	v := int(d.b[0]) % n
	d.b = d.b[1:]
	return v
}

// Mostly is right but for one time in many.
func Mostly[T any](d *Dice, right T, wrong ...T) T {
	if d.N(d.rare) == 15 {
		return wrong[d.N(len(wrong))]
	}
	return right
}
