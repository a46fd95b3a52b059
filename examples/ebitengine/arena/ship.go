package arena

import (
	"math"
	"time"
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

// Body is what of a ship its player predicts.
type Body struct {
	Pos    Vec     `net:"q=0.05,simulated" predict:"0.05,smooth" interp:"teleport=120"`
	Vel    Vec     `predict:"0.5"`
	Angle  float64 `net:"rot=12,simulated" predict:"0.1" interp:""` // in degrees, from 0 to 360
	Reload float64 `predict:"0.01"`                                 // seconds until it may fire
	Shots  uint32  `predict:""`                                     // fired so far
}

// Input is a frame's.
type Input struct {
	Turn         int8 // -1, 0 or 1
	Thrust, Fire bool
}

const (
	turnRate   = 206.0 // degrees a second
	thrust     = 420.0
	drag       = 1.1
	reloadTime = 0.35
)

// simulate is the movement of both ends. It reports a shot.
func (b *Body) simulate(in Input, dt time.Duration) (fired bool) {
	t := dt.Seconds()
	b.Angle = math.Mod(b.Angle+turnRate*float64(in.Turn)*t+360, 360)
	if in.Thrust {
		b.Vel = b.Vel.Plus(Direction(radians(b.Angle)).Times(thrust * t))
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
		return true
	}
	return false
}

func bounce(x, v, size float64) (float64, float64) {
	if x < Radius && v < 0 || x > size-Radius && v > 0 {
		v = -0.6 * v
	}
	return min(max(x, Radius), size-Radius), v
}
