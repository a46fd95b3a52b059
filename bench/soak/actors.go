package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

type vec struct{ X, Y float64 }

// String is the place in the steps in which it travels.
func (v vec) String() string {
	return fmt.Sprintf("%d %d", int(math.Round(v.X*100)), int(math.Round(v.Y*100)))
}

// pawn is a client's own actor.
type pawn struct {
	actorrep.Base
	Name   string               `net:"initial"`
	Pos    vec                  `net:"q=0.01"`
	Steps  actorrep.Var[uint32] `net:""`
	Secret uint32               `net:"owner"`
	Near   netguid.GUID         `net:""`

	shouts, answers uint32 // calls made at this end, and numbered so
	heard           uint32 // calls that came
	problem         func(format string, args ...any)
}

// crate comes and goes.
type crate struct {
	actorrep.Base
	Pos   vec    `net:"q=0.01"`
	Label string `net:""`
	Load  uint16 `net:""`
	life  int
}

// hear notes a numbered call.
func (p *pawn) hear(n uint32) {
	if n != p.heard && p.problem != nil {
		p.problem("call %d of %s came instead of %d", n, p.Name, p.heard)
	}
	p.heard = n + 1
}

var (
	shout  = actorrep.ServerRPC(func(_ actorrep.Call, p *pawn, n uint32) error { p.hear(n); return nil }, actorrep.Reliable)
	answer = actorrep.ClientRPC(func(_ actorrep.Call, p *pawn, n uint32) error { p.hear(n); return nil }, actorrep.Reliable)
	wave   = actorrep.MulticastRPC(func(actorrep.Call, *pawn, uint8) error { return nil })
)

func register(w *actorrep.World) error {
	return errors.Join(w.Register("pawn", (*pawn)(nil), actorrep.RPCs{"Shout": shout, "Answer": answer, "Wave": wave}), w.Register("crate", (*crate)(nil)))
}

const crates = 20

// yard is a server's actors.
type yard struct {
	world  *actorrep.World
	rng    *rand.Rand
	crates []*crate
	pawns  []*pawn // of those here, in the order they came
	frozen bool
}

func (y *yard) place() vec { return vec{y.rng.Float64() * 100, y.rng.Float64() * 100} }

// step moves some, and lets crates come and go.
func (y *yard) step(problem func(string, ...any)) {
	if y.frozen {
		return
	}
	if len(y.crates) < crates && y.rng.IntN(4) == 0 {
		c := &crate{Pos: y.place(), life: 20 + y.rng.IntN(200)}
		if err := y.world.Spawn(c); err != nil {
			problem("spawn: %v", err)
		}
		y.crates = append(y.crates, c)
	}
	kept := y.crates[:0]
	for _, c := range y.crates {
		if c.life--; c.life > 0 {
			if y.rng.IntN(10) == 0 {
				c.Load++
				c.Label = fmt.Sprintf("load %d", c.Load)
			}
			kept = append(kept, c)
		} else if err := y.world.Destroy(c); err != nil {
			problem("destroy: %v", err)
		}
	}
	y.crates = kept
	for _, p := range y.pawns {
		y.move(p, problem)
	}
}

func (y *yard) move(p *pawn, problem func(string, ...any)) {
	if y.rng.IntN(4) == 0 {
		p.Pos.X += y.rng.Float64() - 0.5
		p.Steps.Set(p.Steps.Get() + 1)
	}
	if y.rng.IntN(20) == 0 && len(y.crates) > 0 {
		p.Secret++
		p.Near = y.crates[y.rng.IntN(len(y.crates))].GUID()
	}
	if y.rng.IntN(40) == 0 {
		if err := wave.Call(p, 1); err != nil {
			problem("a wave: %v", err)
		}
	}
}

// calls makes the next numbered call now and then. Who doesn't have the actor yet, or is far behind, is called later.
func calls(rng *rand.Rand, n *uint32, call func(n uint32) error, problem func(string, ...any)) {
	if rng.IntN(10) > 0 {
		return
	}
	switch err := call(*n); {
	case err == nil:
		*n++
	case errors.Is(err, actorrep.ErrFull), errors.Is(err, actorrep.ErrNotThere), errors.Is(err, actorrep.ErrNotOwner), errors.Is(err, actorrep.ErrNoOwner):
	default:
		problem("call %d: %v", *n, err)
	}
}

// look is what a client is to see of an actor.
func look(a actorrep.Actor, owner bool) string {
	switch a := a.(type) {
	case *pawn:
		secret := uint32(0)
		if owner {
			secret = a.Secret
		}
		return fmt.Sprintf("%s at %v, %d steps, secret %d, near %v", a.Name, a.Pos, a.Steps.Get(), secret, a.Near)
	case *crate:
		return fmt.Sprintf("crate at %v, %q, %d", a.Pos, a.Label, a.Load)
	}
	return "nothing"
}

// difference is the first actor that a client sees otherwise than its server says, or "".
func difference(client, server *actorrep.World, own string) string {
	if client.Len() != server.Len() {
		return fmt.Sprintf("%d actors, the server has %d", client.Len(), server.Len())
	}
	for a := range server.All {
		id := a.(interface{ GUID() netguid.GUID }).GUID()
		mine := false
		if p, ok := a.(*pawn); ok {
			mine = p.Name == own
		}
		if got, want := look(client.Find(id), mine), look(a, mine); got != want {
			return fmt.Sprintf("%v: %s; the server has %s", id, got, want)
		}
	}
	return ""
}
