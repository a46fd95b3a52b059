package arena

import "time"

// jump is how far a ship may come at once; one that is farther has appeared somewhere else. Body's tag says the same.
const jump = 120

// Ships is what is drawn: the own ship where it is predicted, the others where they were a little ago.
func (c *Client) Ships(yield func(s Sprite) bool) {
	var drawn Ship
	for a := range c.world.All {
		s, ok := a.(*Ship)
		if !ok || s == c.own && c.Own() == nil {
			continue // where the own one is isn't known yet
		}
		c.drawn.At(s, &drawn)
		sprite := s.sprite(drawn.Pos, radians(drawn.Angle), s.Thrust)
		if sprite.Own = s == c.own; sprite.Own {
			off := c.ships.Offset(s, c.now)
			sprite.Pos = s.Pos.Plus(Vec{off[0], off[1]})
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
	shown, ok := c.drawn.Shown()
	if !ok {
		return
	}
	for a := range c.world.All {
		b, ok := a.(*Bullet)
		if !ok || c.own != nil && b.Shooter == c.own.GUID() {
			continue
		}
		if age := shown - b.Born; age >= 0 && !yield(b.From.Plus(b.Vel.Times(age.Seconds()))) {
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
