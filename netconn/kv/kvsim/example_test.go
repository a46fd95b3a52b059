package kvsim_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// claim is a machine that wants a key to itself.
type claim struct{ won string }

func (c *claim) Watches() []string { return []string{"throne"} }

func (c *claim) Step(now time.Duration, in []kv.Event) (ops []kv.Op) {
	for _, e := range in {
		switch e.Kind {
		case kv.Current: // there is a store
			ops = append(ops, kv.Op{ID: 1, Kind: kv.Put, Key: "throne", Expect: 0}) // it must not exist
		case kv.Result:
			c.won = map[kv.Status]string{kv.OK: "yes", kv.Conflict: "no"}[e.Status]
		}
	}
	return ops
}

// monarchy has the store on the server, and two claims on the clients.
type monarchy struct {
	store  *kvsim.Store
	claims []*claim
}

type program func(now time.Time) error

func (p program) Tick(now time.Time) error { return p(now) }

func (g *monarchy) Boot(h *simtest.Host) (simtest.Program, error) {
	if h.IsServer() {
		return g.store, nil
	}
	c := &claim{}
	g.claims = append(g.claims, c)
	view := g.store.View(h, c)
	return program(func(now time.Time) error {
		kv.Tick(c, view, now.Sub(simtest.Epoch))
		return nil
	}), nil
}

func (g *monarchy) Calm() {}

func (g *monarchy) Pending() string {
	for _, c := range g.claims {
		if c.won == "" {
			return "not all have an answer"
		}
	}
	return ""
}

func ExampleNew() {
	g := &monarchy{}
	r := simtest.Play(simtest.Script{Seed: 1, Run: time.Second, Servers: 1, Clients: 2}, func(w *simtest.Simulation, _ *simtest.Script) (simtest.Game, error) {
		g.store = kvsim.New(w.Host("server1"), kvsim.Trouble{Delay: 5 * time.Millisecond})
		return g, nil
	})
	n := map[string]int{}
	for _, c := range g.claims {
		n[c.won]++
	}
	fmt.Println(r.OK(), n["yes"], "has it and", n["no"], "doesn't")
	// Output: true 1 has it and 1 doesn't
}
