package arena

import (
	"math"
	"math/rand/v2"
)

// bot flies to a place, turns to whom it meets, and fires.
type bot struct {
	rng    *rand.Rand
	target Vec
	until  uint32 // tick at which it wants something else
}

// steer is the bot's input in a tick.
func (b *bot) steer(s *Server, p *player) Input {
	if s.ticks >= b.until {
		b.until = s.ticks + uint32(40+b.rng.IntN(80))
		b.target = s.place().Pos
	}
	at, in := p.ship.Pos, Input{}
	goal := b.target
	for _, q := range s.players {
		if d := q.ship.Pos.Distance(at); q != p && d < 160 {
			goal = q.ship.Pos
		}
	}
	angle := math.Remainder(math.Atan2(goal.Y-at.Y, goal.X-at.X)-radians(p.ship.Angle), 2*math.Pi)
	switch {
	case angle > 0.1:
		in.Turn = 1
	case angle < -0.1:
		in.Turn = -1
	}
	in.Thrust = math.Abs(angle) < 0.7 && at.Distance(goal) > 60
	in.Fire = goal != b.target && math.Abs(angle) < 0.15 && b.rng.IntN(4) == 0
	return in
}
