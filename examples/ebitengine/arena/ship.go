package arena

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// The field, in units that are pixels on the screen.
const (
	Width  = 960.0
	Height = 600.0
	// Radius is a ship's.
	Radius = 14.0
)

// TickRate is the server's, a second.
const TickRate = 30

const tick = time.Second / TickRate

// Vec is a place or a speed.
type Vec struct{ X, Y float64 }

// Plus is the sum.
func (a Vec) Plus(b Vec) Vec { return Vec{a.X + b.X, a.Y + b.Y} }

// Times is the product.
func (a Vec) Times(f float64) Vec { return Vec{a.X * f, a.Y * f} }

// Distance is how far b is from a.
func (a Vec) Distance(b Vec) float64 { return math.Hypot(a.X-b.X, a.Y-b.Y) }

// Direction is the unit vector of an angle.
func Direction(angle float64) Vec { return Vec{math.Cos(angle), math.Sin(angle)} }

// Body is the state of a ship that its player predicts.
type Body struct {
	Pos, Vel Vec
	Angle    float64 // in radians, from 0 to 2π
	Reload   float64 // seconds until it may fire
	Shots    uint32  // fired so far
}

// Input is a frame's.
type Input struct {
	Turn         int8 // -1, 0 or 1
	Thrust, Fire bool
}

const (
	turnRate   = 3.6 // radians a second
	thrust     = 420.0
	drag       = 1.1
	reloadTime = 0.35
)

// Simulate is the movement of both ends.
func Simulate(b *Body, in Input, dt time.Duration) {
	t := dt.Seconds()
	b.Angle = math.Mod(b.Angle+turnRate*float64(in.Turn)*t+2*math.Pi, 2*math.Pi)
	if in.Thrust {
		b.Vel = b.Vel.Plus(Direction(b.Angle).Times(thrust * t))
	}
	b.Vel = b.Vel.Times(math.Exp(-drag * t))
	if math.Abs(b.Vel.X)+math.Abs(b.Vel.Y) < 0.5 {
		b.Vel = Vec{}
	}
	b.Pos.X, b.Vel.X = bounce(b.Pos.X+b.Vel.X*t, b.Vel.X, Width)
	b.Pos.Y, b.Vel.Y = bounce(b.Pos.Y+b.Vel.Y*t, b.Vel.Y, Height)
	if b.Reload = max(0, b.Reload-t); in.Fire && b.Reload == 0 {
		b.Reload = reloadTime
		b.Shots++
	}
}

func bounce(x, v, size float64) (float64, float64) {
	if x < Radius && v < 0 || x > size-Radius && v > 0 {
		v = -0.6 * v
	}
	return min(max(x, Radius), size-Radius), v
}

// maxError is what the server lets pass: what the rounding of claims, and processors that round differently, make of
// equal states.
const maxError = 0.05

// apart is how far two bodies differ, in pixels as a player would feel it.
func apart(a, b *Body) float64 {
	d := a.Pos.Distance(b.Pos) + 0.1*a.Vel.Distance(b.Vel) + 20*math.Abs(math.Remainder(a.Angle-b.Angle, 2*math.Pi))
	if a.Shots != b.Shots {
		d += 5
	}
	return d
}

func (b *Body) floats() [6]*float64 {
	return [...]*float64{&b.Pos.X, &b.Pos.Y, &b.Vel.X, &b.Vel.Y, &b.Angle, &b.Reload}
}

// model is what the player and the server share.
func model() prediction.Model[Body, Input] {
	return prediction.Model[Body, Input]{
		Simulate: Simulate,
		Distance: apart,
		WriteInput: func(w *bitio.Writer, in *Input) {
			w.WriteInt(uint32(in.Turn+1), 3)
			w.WriteBool(in.Thrust)
			w.WriteBool(in.Fire)
		},
		ReadInput: func(r *bitio.Reader, in *Input) {
			*in = Input{int8(r.ReadInt(3)) - 1, r.ReadBool(), r.ReadBool()}
		},
		WriteState: func(w *bitio.Writer, b *Body) {
			for _, f := range b.floats() {
				w.WriteFloat64(*f)
			}
			w.WriteIntPacked(b.Shots)
		},
		ReadState: func(r *bitio.Reader, b *Body) {
			for _, f := range b.floats() {
				*f = r.ReadFloat64()
			}
			b.Shots = r.ReadIntPacked()
		},
		WriteClaim: func(w *bitio.Writer, b *Body) { // half the bits; the server allows for the rounding
			for _, f := range b.floats() {
				w.WriteFloat32(float32(*f))
			}
			w.WriteIntPacked(b.Shots)
		},
		ReadClaim: func(r *bitio.Reader, b *Body) {
			for _, f := range b.floats() {
				*f = float64(r.ReadFloat32())
			}
			b.Shots = r.ReadIntPacked()
		},
	}
}
