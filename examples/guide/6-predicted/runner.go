package main

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Keys is what a player does.
type Keys struct{ Dir int8 }

// Runner runs along a line of forty metres.
type Runner struct {
	actorrep.Base
	X float64 `net:"q=0.01,simulated" predict:"0.001" interp:""`
}

// Simulate is what both ends know of running: the same keys make the same move.
func (r *Runner) Simulate(k Keys, dt time.Duration) {
	r.X = min(max(r.X+5*float64(k.Dir)*dt.Seconds(), -20), 20)
}
