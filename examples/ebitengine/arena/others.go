package arena

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/interpolation"
)

// pose is what is interpolated of a ship.
type pose struct {
	pos   Vec
	angle float64
}

// jump is how far a ship may come between two snapshots; one that is farther has appeared somewhere else.
const jump = 120

func newBuffer() (*interpolation.Buffer[pose], error) {
	return interpolation.NewBuffer(interpolation.BufferConfig[pose]{
		Lerp: func(a, b pose, t float64) pose {
			turn := math.Remainder(b.angle-a.angle, 2*math.Pi)
			return pose{a.pos.Plus(b.pos.Plus(a.pos.Times(-1)).Times(t)), a.angle + turn*t}
		},
		Teleport: func(a, b pose) bool { return a.pos.Distance(b.pos) > jump },
	})
}

// observe notes where the others were at the server's tick that came last.
func (c *Client) observe() {
	if c.clock == nil || c.clock.Tick == c.seen {
		return
	}
	c.seen = c.clock.Tick
	at := ticks(c.seen)
	c.timeline.Arrived(c.now, at)
	for a := range c.world.All {
		if s, ok := a.(*Ship); ok && s.others != nil {
			s.others.Push(at, pose{s.Pos, radians(s.Angle)})
		}
	}
}

// Ships is what is drawn: the own ship where it is predicted, the others where they were a little ago.
func (c *Client) Ships(yield func(s Sprite) bool) {
	shown, ok := c.timeline.Now(c.now)
	if !ok {
		return
	}
	for a := range c.world.All {
		s, ok := a.(*Ship)
		if !ok {
			continue
		}
		sprite := s.sprite(s.Pos, radians(s.Angle), s.Thrust)
		switch {
		case s == c.own && c.Own() == nil:
			continue // where it is isn't known yet
		case s == c.own:
			off := c.ships.Offset(s, c.now)
			sprite.Pos = s.Pos.Plus(Vec{off[0], off[1]})
			sprite.Own = true
		case s.others != nil:
			if p, state := s.others.At(shown); state != interpolation.Empty {
				sprite.Pos, sprite.Angle = p.pos, p.angle
			}
		}
		if !yield(sprite) {
			return
		}
	}
}

// Bullets is where the bullets are drawn. The own ones fly from the moment they are fired, without the server's.
func (c *Client) Bullets(yield func(at Vec) bool) {
	for _, g := range c.ghosts {
		if !yield(g.at(c.now)) {
			return
		}
	}
	shown, ok := c.timeline.Now(c.now)
	if !ok {
		return
	}
	for a := range c.world.All {
		b, ok := a.(*Bullet)
		if !ok || c.own != nil && b.Shooter == c.own.GUID() {
			continue
		}
		if age := shown - ticks(b.Born); age >= 0 && !yield(b.From.Plus(b.Vel.Times(age.Seconds()))) {
			return
		}
	}
}

// ghost is an own bullet as this client flies it.
type ghost struct {
	from, vel Vec
	born      time.Duration
}

func (g *ghost) at(now time.Duration) Vec { return g.from.Plus(g.vel.Times((now - g.born).Seconds())) }
