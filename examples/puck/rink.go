package main

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/predict"
)

// Vec is a place or a velocity, in metres and metres a second.
type Vec struct{ X, Y float64 }

func (a Vec) plus(b Vec) Vec         { return Vec{a.X + b.X, a.Y + b.Y} }
func (a Vec) minus(b Vec) Vec        { return Vec{a.X - b.X, a.Y - b.Y} }
func (a Vec) times(f float64) Vec    { return Vec{a.X * f, a.Y * f} }
func (a Vec) dot(b Vec) float64      { return a.X*b.X + a.Y*b.Y }
func (a Vec) length() float64        { return math.Hypot(a.X, a.Y) }
func (a Vec) distance(b Vec) float64 { return a.minus(b).length() }

// The rink goes from -halfLength to halfLength, and from -halfWidth to halfWidth.
const (
	halfLength, halfWidth = 15.0, 8.0

	playerRadius, playerMass = 0.6, 3.0
	ballRadius, ballMass     = 0.4, 1.0

	thrust         = 18.0 // of a player, m/s²
	playerFriction = 2.0  // a second
	ballFriction   = 0.5
)

// Keys is a player's input: a direction.
type Keys struct{ X, Y int8 }

// Disc is what slides.
type Disc struct {
	Pos Vec `net:"q=0.01,simulated" predict:"0.005,smooth"`
	Vel Vec `net:"q=0.01,simulated" predict:"0.01"`
}

// slide moves it on, and off the boards.
func (d *Disc) slide(friction float64, dt time.Duration) {
	d.Vel = d.Vel.times(math.Max(0, 1-friction*dt.Seconds()))
	d.Pos = d.Pos.plus(d.Vel.times(dt.Seconds()))
	if math.Abs(d.Pos.X) > halfLength {
		d.Pos.X, d.Vel.X = math.Copysign(halfLength, d.Pos.X), -d.Vel.X
	}
	if math.Abs(d.Pos.Y) > halfWidth {
		d.Pos.Y, d.Vel.Y = math.Copysign(halfWidth, d.Pos.Y), -d.Vel.Y
	}
}

// disc is an actor that slides.
type disc interface {
	actorrep.Actor
	GUID() netguid.GUID
	body() (d *Disc, radius, mass float64)
}

// Player is one of six.
type Player struct {
	actorrep.Base
	Disc
	Number int    `net:"initial"`
	Ticks  uint32 `predict:""` // of its own; what it's compared by

	near func(p *Player) // on a client that predicts nobody else: what it knows of others
}

// Ball is what they run for.
type Ball struct {
	actorrep.Base
	Disc
}

func (p *Player) body() (*Disc, float64, float64) { return &p.Disc, playerRadius, playerMass }
func (b *Ball) body() (*Disc, float64, float64)   { return &b.Disc, ballRadius, ballMass }

// Simulate runs.
func (p *Player) Simulate(in Keys, dt time.Duration) {
	push := Vec{float64(in.X), float64(in.Y)}
	if l := push.length(); l > 0 {
		p.Vel = p.Vel.plus(push.times(thrust * dt.Seconds() / l))
	}
	p.slide(playerFriction, dt)
	p.Ticks++
	if p.near != nil {
		p.near(p)
	}
}

// Simulate rolls.
func (b *Ball) Simulate(_ predict.NoInput, dt time.Duration) { b.slide(ballFriction, dt) }

// collide is a tick of what happens between members: elastic collisions.
func collide(members []actorrep.Actor, _ time.Duration) {
	for i, a := range members {
		for _, b := range members[i+1:] {
			bounce(a.(disc), b.(disc))
		}
	}
}

// bounce moves two discs apart and has them exchange their momentum along the line between them.
func bounce(a, b disc) {
	da, ra, ma := a.body()
	db, rb, mb := b.body()
	line := db.Pos.minus(da.Pos)
	d := line.length()
	if d >= ra+rb || d == 0 {
		return
	}
	line = line.times(1 / d)
	over := ra + rb - d
	da.Pos = da.Pos.minus(line.times(over * mb / (ma + mb)))
	db.Pos = db.Pos.plus(line.times(over * ma / (ma + mb)))
	if closing := da.Vel.minus(db.Vel).dot(line); closing > 0 {
		impulse := 2 * closing * ma * mb / (ma + mb)
		da.Vel = da.Vel.minus(line.times(impulse / ma))
		db.Vel = db.Vel.plus(line.times(impulse / mb))
	}
}

// bot is what a player does who sees a ball there: he runs behind it and pushes it to the other side, half of them to the right.
func bot(p *Player, ball Vec) Keys {
	side := 1.0
	if p.Number%2 == 1 {
		side = -1
	}
	behind := ball.plus(Vec{-side * (playerRadius + ballRadius + 0.3), 0})
	if (ball.X-p.Pos.X)*side > 0.5 && math.Abs(ball.Y-p.Pos.Y) < 1 {
		behind = ball
	}
	to := behind.minus(p.Pos)
	return Keys{key(to.X), key(to.Y)}
}

func key(v float64) int8 {
	switch {
	case v > 0.3:
		return 1
	case v < -0.3:
		return -1
	}
	return 0
}
