package main

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Body is the character: metres, and metres a second.
type Body struct{ X, Y, VX, VY float64 }

// Input is a frame's: which way the player pushes, -1, 0 or 1 each.
type Input struct{ X, Y int8 }

const (
	field = 40.0 // half its width
	speed = 6.0
)

// simulate is the movement of both ends: it gains speed, slows down by itself, and stops at the
// walls of the field.
func simulate(b *Body, in Input, dt time.Duration) {
	t := dt.Seconds()
	f := 1 - math.Exp(-10*t)
	b.VX += (speed*float64(in.X) - b.VX) * f
	b.VY += (speed*float64(in.Y) - b.VY) * f
	if math.Abs(b.VX)+math.Abs(b.VY) < 0.01 {
		b.VX, b.VY = 0, 0
	}
	b.X = min(max(b.X+b.VX*t, -field), field)
	b.Y = min(max(b.Y+b.VY*t, -field), field)
}

// distance is in metres; a difference of speed counts for what it makes in a tenth of a second.
func distance(a, b *Body) float64 {
	return math.Hypot(math.Hypot(a.X-b.X, a.Y-b.Y), 0.1*math.Hypot(a.VX-b.VX, a.VY-b.VY))
}

// model is what the player and the server share.
func model() prediction.Model[Body, Input] {
	return prediction.Model[Body, Input]{
		Simulate: simulate,
		Distance: distance,
		WriteInput: func(w *bitio.Writer, in *Input) {
			w.WriteInt(uint32(in.X+1), 3)
			w.WriteInt(uint32(in.Y+1), 3)
		},
		ReadInput: func(r *bitio.Reader, in *Input) {
			*in = Input{int8(r.ReadInt(3)) - 1, int8(r.ReadInt(3)) - 1}
		},
		WriteState: func(w *bitio.Writer, b *Body) {
			for _, v := range [...]float64{b.X, b.Y, b.VX, b.VY} {
				w.WriteFloat64(v)
			}
		},
		ReadState: func(r *bitio.Reader, b *Body) {
			*b = Body{r.ReadFloat64(), r.ReadFloat64(), r.ReadFloat64(), r.ReadFloat64()}
		},
		WriteClaim: func(w *bitio.Writer, b *Body) { // half the bits; the server allows for the rounding
			for _, v := range [...]float64{b.X, b.Y, b.VX, b.VY} {
				w.WriteFloat32(float32(v))
			}
		},
		ReadClaim: func(r *bitio.Reader, b *Body) {
			for _, v := range [...]*float64{&b.X, &b.Y, &b.VX, &b.VY} {
				*v = float64(r.ReadFloat32())
			}
		},
	}
}

// maxError is what the server lets pass, in metres: what the claim's rounding may make of equal states.
const maxError = 1e-5
