package arena

const (
	bulletSpeed = 380.0
	bulletLife  = 36 * tick
	maxBullets  = 256
	damage      = 20
)

// fire makes a bullet of a player's.
func (s *Server) fire(p *player) {
	if len(s.bullets) >= maxBullets || s.frozen {
		return
	}
	b := &p.ship.Body
	d := Direction(radians(b.Angle))
	bullet := &Bullet{From: b.Pos.Plus(d.Times(Radius)), Vel: d.Times(bulletSpeed), Born: s.now, Shooter: p.ship.GUID()}
	bullet.pos = bullet.From
	s.fail(s.world.Spawn(bullet))
	s.bullets = append(s.bullets, bullet)
}

// fly moves the bullets and sees what they hit.
func (s *Server) fly() {
	kept := s.bullets[:0]
	for _, b := range s.bullets {
		b.pos = b.pos.Plus(b.Vel.Times(tick.Seconds()))
		if s.frozen || s.now-b.Born > bulletLife || outside(b.pos) || s.hit(b) {
			s.fail(s.world.Destroy(b))
			continue
		}
		kept = append(kept, b)
	}
	clear(s.bullets[len(kept):])
	s.bullets = kept
}

func outside(p Vec) bool { return p.X < 0 || p.X > Width || p.Y < 0 || p.Y > Height }

// hit reports whether a bullet ends in a ship, which may then appear somewhere else.
func (s *Server) hit(b *Bullet) bool {
	for _, p := range s.players {
		if p.ship.GUID() == b.Shooter || p.ship.Pos.Distance(b.pos) > Radius {
			continue
		}
		if p.ship.Hull > damage {
			p.ship.Hull -= damage
			return true
		}
		p.ship.Hull = 100
		shots := p.ship.Shots
		p.ship.Body = s.place() // its player is corrected
		p.ship.Shots = shots
		for _, q := range s.players {
			if q.ship.GUID() == b.Shooter {
				q.ship.Score++
			}
		}
		return true
	}
	return false
}
