package main

import (
	"math"
	"math/rand/v2"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Vec is a place or a speed in the arena, in metres.
type Vec struct{ X, Y float64 }

// Player is one client's figure.
type Player struct {
	actorrep.Base
	Name   string       `net:"initial"`
	Pos    Vec          `net:"q=0.01,notify=OnMoved"`
	Health uint8        `net:"max=100,notify=OnHealth"`
	Score  uint32       `net:""`
	Target netguid.GUID `net:""`            // the pickup it runs for
	Energy float32      `net:"q=0.1,owner"` // only its own player sees it

	moves, hits int // on a client: notifies counted
}

// OnMoved counts moves on a client.
func (p *Player) OnMoved() { p.moves++ }

// OnHealth counts hits on a client.
func (p *Player) OnHealth(old uint8) {
	if p.Health < old {
		p.hits++
	}
}

// Pickup is something to run for.
type Pickup struct {
	actorrep.Base
	Pos   Vec    `net:"q=0.01"`
	Value uint16 `net:"max=1000"`
	Taken bool   `net:""`

	ticks int // since it was taken
}

const (
	arenaSize = 100.0
	pickups   = 30
	stepTime  = 1.0 / 60
)

func register(w *actorrep.World) error {
	if err := w.Register("Player", (*Player)(nil)); err != nil {
		return err
	}
	return w.Register("Pickup", (*Pickup)(nil))
}

// game is the server's rules.
type game struct {
	world   *actorrep.World
	rng     *rand.Rand
	players []*Player
	things  []*Pickup
	frozen  bool // nothing moves any more

	spawned, died, taken int
}

func newGame(w *actorrep.World, seed uint64) *game {
	return &game{world: w, rng: rand.New(rand.NewPCG(seed, 0))}
}

func (g *game) place() Vec { return Vec{g.rng.Float64() * arenaSize, g.rng.Float64() * arenaSize} }

func (g *game) join(name string, owner *actorrep.Peer) (*Player, error) {
	p := &Player{Name: name, Pos: g.place(), Health: 100, Energy: 50}
	p.SetOwner(owner)
	if err := g.world.Spawn(p); err != nil {
		return nil, err
	}
	g.players = append(g.players, p)
	g.spawned++
	return p, nil
}

func (g *game) leave(p *Player) {
	for i, q := range g.players {
		if q == p {
			g.players = append(g.players[:i], g.players[i+1:]...)
			_ = g.world.Destroy(p) // a server's world
			return
		}
	}
}

// step is one tick of the rules: run for the nearest pickup, take it, fight who comes near, die
// and come back.
func (g *game) step() error {
	if g.frozen {
		return nil
	}
	for len(g.things) < pickups {
		t := &Pickup{Pos: g.place(), Value: uint16(1 + g.rng.IntN(100))}
		if err := g.world.Spawn(t); err != nil {
			return err
		}
		g.things = append(g.things, t)
		g.spawned++
	}
	for _, p := range g.players {
		g.run(p)
	}
	g.fight()
	kept := g.things[:0]
	for _, t := range g.things {
		if t.Taken {
			if t.ticks++; t.ticks > 30 {
				g.died++
				if err := g.world.Destroy(t); err != nil {
					return err
				}
				continue
			}
		}
		kept = append(kept, t)
	}
	g.things = kept
	return nil
}

func (g *game) run(p *Player) {
	best, dist := (*Pickup)(nil), math.Inf(1)
	for _, t := range g.things {
		if d := distance(p.Pos, t.Pos); !t.Taken && d < dist {
			best, dist = t, d
		}
	}
	if best == nil {
		return
	}
	p.Target = best.GUID()
	const speed = 12.0
	if dist < 1 {
		best.Taken = true
		g.taken++
		p.Score += uint32(best.Value)
		p.Energy = min(100, p.Energy+20)
		return
	}
	p.Energy = max(0, p.Energy-0.05)
	v := speed * (0.5 + float64(p.Energy)/200) * stepTime / dist
	p.Pos.X += (best.Pos.X - p.Pos.X) * v
	p.Pos.Y += (best.Pos.Y - p.Pos.Y) * v
}

func (g *game) fight() {
	for _, a := range g.players {
		for _, b := range g.players {
			if a == b || distance(a.Pos, b.Pos) > 4 || g.rng.IntN(6) > 0 {
				continue
			}
			if b.Health > 5 {
				b.Health -= 5
				continue
			}
			b.Health, b.Pos, b.Energy = 100, g.place(), 50
			a.Score += 50
			g.died++
		}
	}
}

func distance(a, b Vec) float64 { return math.Hypot(a.X-b.X, a.Y-b.Y) }
