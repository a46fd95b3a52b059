package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"runtime/debug"

	"github.com/bunchnet/bunchnet/bench/cputime"
)

// areas is the parts of the module that are attacked, in the order in which they are printed.
var areas = []string{"core", "replication", "messages", "lockstep", "rates", "services", "sessions"}

// attack is one promise and what tries to break it. To add one, write a file named for its area, such as
// messages_blocks.go, with
//
//	func init() {
//		register(attack{area: "messages", name: "half of every block",
//			promise: "blocks that never end cost the receiver at most its budget", bound: atMost(1, "of MaxMemory"), run: halfBlocks})
//	}
//
//	func halfBlocks(e *env) figure {
//		...
//		return figure{value: used}
//	}
type attack struct {
	area, name string
	// promise is the sentence that run tries to make untrue.
	promise string
	// bound is what the figure must keep to.
	bound bound
	run   func(e *env) figure
	// alone keeps other attacks from running at the same time: for what measures the heap or real time.
	alone bool
	// known says why the promise is known not to hold yet. It is printed and isn't a failure. No attack should have it.
	known string
}

var attacks []attack

// register adds attacks to the program; call it from init.
func register(list ...attack) { attacks = append(attacks, list...) }

// bound is the largest figure that keeps a promise, or the smallest.
type bound struct {
	value float64
	unit  string
	least bool
}

// atMost is the bound of what must stay small.
func atMost(v float64, unit string) bound { return bound{v, unit, false} }

// atLeast is the bound of what must stay large.
func atLeast(v float64, unit string) bound { return bound{v, unit, true} }

// none is the bound of what must not happen at all.
func none(unit string) bound { return atMost(0, unit) }

func (b bound) holds(v float64) bool {
	if b.least {
		return v >= b.value
	}
	return v <= b.value
}

func (b bound) String() string {
	if b.least {
		return ">= " + number(b.value)
	}
	return "<= " + number(b.value)
}

// figure is what an attack measured.
type figure struct {
	value float64
	// broken says what went wrong when that is more than the value shows; then the promise doesn't hold.
	broken string
}

// broken is the figure of an attack that went wrong before there was anything to measure.
func broken(format string, args ...any) figure {
	return figure{broken: fmt.Sprintf(format, args...)}
}

// env is what an attack gets.
type env struct {
	// seed is of this attack alone, so that it does the same whatever else runs.
	seed uint64
	rng  *rand.Rand
	// quick asks for a sample that takes a second or so.
	quick bool
	notes []string
}

// pick is how much to do: quick or full.
func (e *env) pick(quick, full int) int {
	if e.quick {
		return quick
	}
	return full
}

// notef keeps a line for -v.
func (e *env) notef(format string, args ...any) {
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

// newEnv is the env of an attack with a name.
func newEnv(area, name string, o options) *env {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s/%d", area, name, o.seed)
	return &env{seed: h.Sum64(), quick: o.quick, rng: rand.New(rand.NewPCG(h.Sum64(), 1))}
}

// runOne runs an attack. A panic is a promise that doesn't hold.
func runOne(a *attack, o options) (out outcome) {
	e := newEnv(a.area, a.name, o)
	runtime.LockOSThread() // for cputime.Thread
	defer runtime.UnlockOSThread()
	began := cputime.Thread()
	defer func() {
		if r := recover(); r != nil {
			out.figure = broken("panic: %v", r)
			e.notef("%s", debug.Stack())
		}
		out.cost, out.notes = cputime.Thread()-began, e.notes
	}()
	out.figure = a.run(e)
	return out
}
