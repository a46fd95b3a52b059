package simtest_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// ticker counts its ticks.
type ticker struct{ n int }

func (t *ticker) Tick(time.Time) error { t.n++; return nil }

// A world without a script: hosts, and what happens to them when.
func ExampleSimulation() {
	w := simtest.NewSimulation(1, func(*simtest.Host) (simtest.Program, error) { return &ticker{}, nil })
	h := w.AddHost("server", true)
	w.At(500*time.Millisecond, func() { h.Pause(400 * time.Millisecond) })
	w.RunUntil(time.Second)
	fmt.Println(h.Program().(*ticker).n < 40, w.Failure() == nil)
	// Output: true true
}

// The same numbers for a seed, on every machine.
func ExampleRand() {
	a, b := simtest.NewRand(7, 1), simtest.NewRand(7, 1)
	fmt.Println(a.IntN(1000) == b.IntN(1000), a.Int64N(1<<40) == b.Int64N(1<<40))
	// Output: true true
}
