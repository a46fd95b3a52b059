package mesh_test

import (
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// order is a reliable call of the player's client, note one of its server; both are numbered. noteAll is a multicast that the same numbers go on in.
var (
	order = actorrep.ServerRPC(func(c actorrep.Call, r *runner, n uint32) error {
		return r.city.calls.ran(r, n)
	}, actorrep.Reliable)
	note = actorrep.ClientRPC(func(c actorrep.Call, r *runner, n uint32) error {
		return c.World.User.(*city).calls.noted(n)
	}, actorrep.Reliable)
	noteAll = actorrep.MulticastRPC(func(c actorrep.Call, r *runner, n uint32) error {
		if c.World.IsServer() {
			return nil
		}
		return c.World.User.(*city).calls.noted(n)
	}, actorrep.Reliable)
	calls = actorrep.RPCs{"Order": order, "Note": note, "NoteAll": noteAll}
)

// ledger is what was called, and what has run.
type ledger struct {
	c             *city
	ordered, done uint32 // orders that were called, and that have run
	notes, heard  uint32 // notes that were called, and that have run
}

// ran is an order that a server runs: each once, in order, where the player plays.
func (l *ledger) ran(r *runner, n uint32) error {
	if s := l.c.plays(); s == nil || s.own != r {
		l.c.w.Failf("order", "order %d runs where the player doesn't play", n)
	}
	if n != l.done+1 {
		l.c.w.Failf("order", "order %d after %d", n, l.done)
	}
	l.done = n
	return nil
}

// noted is a note that the client runs: each once, in order.
func (l *ledger) noted(n uint32) error {
	if n != l.heard+1 {
		l.c.w.Failf("note", "note %d after %d", n, l.heard)
	}
	l.heard = n
	return nil
}

// maxUnder is the most calls under way in one direction: a queue takes 64.
const maxUnder = 40

// call makes calls, now and then, from both ends.
func (l *ledger) call() {
	c := l.c
	if e := c.client.ends[c.client.drawn]; e != nil && c.rng.IntN(3) > 0 && l.ordered < l.done+maxUnder {
		if r := e.mine(); r != nil && order.Call(r, l.ordered+1) == nil {
			l.ordered++
		}
	}
	s := c.plays()
	if s == nil || s.own == nil || s.peers[me] == nil || c.rng.IntN(3) == 0 || l.notes >= l.heard+maxUnder {
		return
	}
	if c.rng.IntN(3) > 0 {
		if note.Call(s.own, l.notes+1) == nil {
			l.notes++
		}
	} else if noteAll.Call(s.own, l.notes+1) == nil {
		l.notes++
	}
}

var (
	callSeeds = flag.Int("calls", 0, "seeds of TestCallsUnderWay; default 12, and 60 with CI set")
	callFirst = flag.Uint64("firstcall", 1, "the first of them")
)

// TestCallsUnderWay: reliable calls of the player's actor, both ways, made in each frame of travels with losses, cuts, pauses and crashes, run once and in order, at the server that
// plays the player, and at the client. In the end all have run, unless a server has died with the player.
func TestCallsUnderWay(t *testing.T) {
	n := *callSeeds
	switch {
	case n > 0:
	case os.Getenv("CI") != "" && !testing.Short():
		n = 60
	default:
		n = 12
	}
	moved, stayed, orders, notes, fates := 0, 0, 0, 0, map[string]int{}
	for seed := *callFirst; seed < *callFirst+uint64(n); seed++ {
		c, fate := playCalls(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		fates[fate]++
		for _, s := range c.servers {
			if s.h.Program() != nil {
				moved, stayed = moved+int(s.m.Counters.Moved), stayed+int(s.m.Counters.Stayed)
			}
		}
		orders, notes = orders+int(c.calls.done), notes+int(c.calls.heard)
	}
	t.Logf("seeds %d to %d: %d travels, %d called off, players: %v; %d calls of clients and %d of servers ran once", *callFirst, *callFirst+uint64(n)-1, moved, stayed, fates, orders, notes)
	require.Greater(t, moved, n)
}

// playCalls plays a seed until everything has come to its end.
func playCalls(t *testing.T, seed uint64) (c *city, fate string) {
	rng := simtest.NewRand(seed, 0x63616c6c)
	net := netsim.Settings{Lag: time.Duration(10+rng.IntN(100)) * time.Millisecond, Loss: float64(rng.IntN(12))}
	c = newCity(t, seed, net)
	c.lose, c.calls = rng.IntN(25), &ledger{c: c}
	c.shown = time.Duration(rng.IntN(400)) * time.Millisecond
	c.begin()
	check := func(what string) {
		if f := c.w.Failure(); f != nil {
			t.Fatalf("seed %d, %s: %v", seed, what, f)
		}
	}
	crashes := rng.IntN(4) == 0
	for range 8 * 60 {
		c.calls.call()
		if s := c.plays(); s != nil && rng.IntN(20) == 0 {
			_ = s.m.Travel(me, c.servers[1-slices.Index(c.servers, s)].h.Name())
		}
		if rng.IntN(120) == 0 {
			hosts := []*simtest.Host{c.servers[0].h, c.servers[1].h, c.client.h}
			i := rng.IntN(3)
			a, b := hosts[i], hosts[(i+1)%3]
			d := time.Duration(rng.IntN(2500)) * time.Millisecond
			switch rng.IntN(3) {
			case 0:
				c.cut(a, b, d)
			case 1:
				c.w.Cut(a, b)
				c.w.At(c.w.Now()+d, func() { c.w.Join(a, b) })
			default:
				a.Pause(min(d, time.Second))
			}
		}
		if crashes && rng.IntN(200) == 0 {
			crashes = false
			i := rng.IntN(2)
			dies, other := c.servers[i], c.servers[1-i]
			dies.h.Crash(time.Hour)
			c.w.At(c.w.Now()+time.Second, func() { other.m.Gone(dies.h.Name()) })
		}
		c.w.RunUntil(c.w.Now() + frame)
		check("while it goes on")
	}
	for range 60 * 60 {
		c.w.RunUntil(c.w.Now() + frame)
		check("in the end")
		s, l := c.plays(), c.calls
		if s != nil && l.done == l.ordered && l.heard == l.notes && c.client.drawn == s.h.Name() {
			return c, "played"
		}
		if e := c.client.ends[c.client.m.Server()]; e == nil || e.closed {
			return c, "disconnected"
		}
		if c.client.m.Lost() && slices.ContainsFunc(c.servers, func(s *server) bool { return s.h.Program() == nil }) {
			return c, "lost"
		}
	}
	t.Fatalf("seed %d: it isn't over: %d orders, %d ran, %d notes, %d came; the client at %s draws %s", seed, c.calls.ordered, c.calls.done, c.calls.notes, c.calls.heard, c.client.m.Server(), c.client.drawn)
	return nil, ""
}
