package game

import "math"

// Bot is a player that turns to the nearest drone that it sees drawn, and fires when that is in the line.
func Bot(c *Client) Input {
	in := Input{Drive: 1}
	target, best := Vec{Size / 2, Size / 2}, math.Inf(1)
	for p := range c.drones() {
		if d := p.Distance(c.own.Pos); d < best {
			target, best = p, d
		}
	}
	to := math.Atan2(target.Y-c.own.Pos.Y, target.X-c.own.Pos.X) * 180 / math.Pi
	off := math.Remainder(to-c.own.Heading, 360)
	switch {
	case off > 1.5:
		in.Turn = 1
	case off < -1.5:
		in.Turn = -1
	}
	if best < 40 {
		in.Drive = 0
	}
	in.Fire = c.own.Ammo > 0 && best < range_*0.9 && math.Abs(off) < 3
	return in
}
