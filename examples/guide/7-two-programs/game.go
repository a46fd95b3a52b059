package main

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Keys is a player's input.
type Keys struct{ Dir int8 }

// Runner runs along a line.
type Runner struct {
	actorrep.Base
	Name string  `net:"initial"`
	X    float64 `net:"q=0.01,simulated" predict:"0.001" interp:""`
}

// Simulate runs at both ends.
func (r *Runner) Simulate(k Keys, dt time.Duration) {
	r.X = min(max(r.X+5*float64(k.Dir)*dt.Seconds(), -20), 20)
}

// end is what a server and a client have alike.
type end struct {
	net     *driver.Driver
	world   *actorrep.World
	runners *predict.Class[*Runner, Keys]
	in      *interp.Interpolator
	drawn   *interp.Class[*Runner]
	players map[*driver.Conn]player // a server's
	ended   error                   // a client's: why its connection ended
}

type player struct {
	peer   *actorrep.Peer
	runner *Runner
}

// newEnd registers the same classes at both ends.
func newEnd(w *actorrep.World) (e *end, err error) {
	e = &end{world: w, players: map[*driver.Conn]player{}}
	began := time.Now()
	keys := func(*Runner) Keys { // a game reads the keyboard here
		if int(time.Since(began).Seconds())%2 == 0 {
			return Keys{1}
		}
		return Keys{-1}
	}
	if e.runners, err = predict.Register(w, "Runner", predict.Config[*Runner, Keys]{Input: keys}); err != nil {
		return nil, err
	}
	if e.in, err = interp.New(w, interp.Config{}); err != nil {
		return nil, err
	}
	e.drawn, err = interp.Register(e.in, interp.ClassConfig[*Runner]{})
	return e, err
}
