package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/mlange-42/ark/ecs"
)

const (
	herd   = 40
	meadow = 100.0
	tick   = 1.0 / 30
)

// game is the server's: sheep run about, catch fire and burn down, and others come.
type game struct {
	world   ecs.World
	rng     *rand.Rand
	sheep   *ecs.Map5[Name, Position, Velocity, Health, Replicated]
	fires   *ecs.Map[Burning]
	movers  *ecs.Filter2[Position, Velocity]
	burning *ecs.Filter2[Burning, Health]
	cold    *ecs.Filter1[Health]

	born, died, lit int
}

func newGame(seed uint64) *game {
	g := &game{world: ecs.NewWorld(), rng: rand.New(rand.NewPCG(seed, 7))}
	w := &g.world
	g.sheep = ecs.NewMap5[Name, Position, Velocity, Health, Replicated](w)
	g.fires = ecs.NewMap[Burning](w)
	g.movers = ecs.NewFilter2[Position, Velocity](w)
	g.burning = ecs.NewFilter2[Burning, Health](w)
	g.cold = ecs.NewFilter1[Health](w).Without(ecs.C[Burning]())
	return g
}

// step is the systems of one tick.
func (g *game) step() {
	for ; g.born-g.died < herd; g.born++ {
		angle, speed := 7*g.rng.Float64(), 1+4*g.rng.Float64()
		g.sheep.NewEntity(&Name{fmt.Sprintf("sheep %d", g.born+1)}, &Position{meadow * g.rng.Float64(), meadow * g.rng.Float64()},
			&Velocity{speed * math.Cos(angle), speed * math.Sin(angle)}, &Health{200, 200}, &Replicated{})
	}
	for q := g.movers.Query(); q.Next(); {
		p, v := q.Get()
		p.X, v.X = bounce(p.X+v.X*tick, v.X)
		p.Y, v.Y = bounce(p.Y+v.Y*tick, v.Y)
	}
	g.burn()
	g.light()
}

func bounce(x, v float64) (float64, float64) {
	if x < 0 && v < 0 || x > meadow && v > 0 {
		v = -v
	}
	return x, v
}

// burn takes health from what burns; entities change only once the query is over.
func (g *game) burn() {
	var out, dead []ecs.Entity
	for q := g.burning.Query(); q.Next(); {
		b, h := q.Get()
		b.Ticks--
		h.Points--
		switch {
		case h.Points == 0:
			dead = append(dead, q.Entity())
		case b.Ticks == 0:
			out = append(out, q.Entity())
		}
	}
	for _, e := range out {
		g.fires.Remove(e)
	}
	for _, e := range dead {
		g.world.RemoveEntity(e)
		g.died++
	}
}

// light sets somebody on fire.
func (g *game) light() {
	var victims []ecs.Entity
	for q := g.cold.Query(); q.Next(); {
		if g.rng.IntN(100) == 0 {
			victims = append(victims, q.Entity())
		}
	}
	for _, e := range victims {
		g.fires.Add(e, &Burning{uint8(20 + g.rng.IntN(100))})
		g.lit++
	}
}

// trails is a system of the clients, over what the server sends and a component of their own.
type trails struct {
	fresh  *ecs.Filter1[Position]
	trails *ecs.Map[Trail]
	all    *ecs.Filter2[Position, Trail]
}

func newTrails(w *ecs.World) *trails {
	return &trails{ecs.NewFilter1[Position](w).Without(ecs.C[Trail]()), ecs.NewMap[Trail](w), ecs.NewFilter2[Position, Trail](w)}
}

func (t *trails) step() {
	var fresh []ecs.Entity
	for q := t.fresh.Query(); q.Next(); {
		fresh = append(fresh, q.Entity())
	}
	for _, e := range fresh {
		t.trails.Add(e, &Trail{Last: Position{math.NaN(), 0}})
	}
	for q := t.all.Query(); q.Next(); {
		p, trail := q.Get()
		if d := math.Hypot(p.X-trail.Last.X, p.Y-trail.Last.Y); d > 0 {
			trail.Length += d
		}
		trail.Last = *p
	}
}
