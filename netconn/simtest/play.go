package simtest

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Game is the game that a run plays.
type Game interface {
	// Boot starts the program of h. It is called for each host at the beginning, and again after each crash.
	Boot(h *Host) (Program, error)
	// Calm is called when the faults are over. From then on the game begins nothing new.
	Calm()
	// Pending returns what must still happen before the run may end, in words; "" when nothing must. It is called ten times a second after Calm.
	Pending() string
}

// Result is the outcome of a run.
type Result struct {
	Script   Script
	Hash     uint64
	Failure  *Failure
	Counters Counters
	// Took is how long the run was, in virtual time.
	Took time.Duration
	// Game is the game that was played.
	Game Game
}

// OK reports whether no checker found a failure.
func (r *Result) OK() bool { return r.Failure == nil }

// String returns the result as one line.
func (r *Result) String() string {
	verdict := "ok"
	if r.Failure != nil {
		verdict = r.Failure.String()
	}
	return fmt.Sprintf("seed %d, %d servers, %d clients, %v, %d datagrams, hash %016x: %s",
		r.Script.Seed, r.Script.Servers, r.Script.Clients, r.Took.Round(time.Millisecond), r.Counters.Sent, r.Hash, verdict)
}

// calmNet is every link after the faults are over.
var calmNet = netsim.Settings{Lag: 10 * time.Millisecond}

// Play runs a script with the game that make returns.
func Play(s Script, make func(w *Simulation, s *Script) (Game, error)) Result {
	s = s.filled()
	r := Result{Script: s}
	var game Game
	w := NewSimulation(s.Seed, func(h *Host) (Program, error) { return game.Boot(h) })
	err := s.Validate()
	if err == nil {
		err = w.populate(&s)
	}
	if err == nil {
		game, err = make(w, &s)
	}
	if err != nil {
		r.Failure = &Failure{Checker: "script", Text: err.Error()}
		return r
	}
	w.schedule(&s)
	w.RunUntil(s.Run)
	w.settle(game, s.Run+s.Settle)
	r.Hash, r.Failure, r.Counters, r.Took, r.Game = w.Hash(), w.failure, w.Counters, w.now, game
	return r
}

// populate adds the script's hosts.
func (w *Simulation) populate(s *Script) error {
	for i := range s.Servers {
		w.AddHost(fmt.Sprintf("server%d", i+1), true)
	}
	for i := range s.Clients {
		if err := w.AddHost(fmt.Sprintf("client%d", i+1), false).SetNet(s.Net, s.Net); err != nil {
			return err
		}
	}
	return nil
}

// ServerOf returns the server that a client belongs to.
func (w *Simulation) ServerOf(h *Host) *Host {
	servers := 0
	for _, s := range w.hosts {
		if s.server {
			servers++
		}
	}
	return w.hosts[(h.index-servers)%servers]
}

// schedule lets the faults happen.
func (w *Simulation) schedule(s *Script) {
	for _, f := range s.Faults {
		if f.At < s.Run {
			w.At(f.At, func() { w.apply(f, s) })
		}
	}
}

func (w *Simulation) apply(f Fault, s *Script) {
	h, other := w.Host(f.Host), w.Host(f.Other)
	until := func(undo func()) { w.At(min(f.At+f.For, s.Run), undo) }
	switch f.Kind {
	case Net, NetUp, NetDn:
		up, down := h.up, h.down
		if f.Kind != NetDn {
			up = f.Net
		}
		if f.Kind != NetUp {
			down = f.Net
		}
		w.setNet(h, up, down)
		until(func() { w.setNet(h, s.Net, s.Net) })
	case Cut, CutOne:
		w.Cut(h, other)
		until(func() { w.Join(h, other) })
		if f.Kind == Cut {
			w.Cut(other, h)
			until(func() { w.Join(other, h) })
		}
	case Rebind:
		h.Rebind()
	case Pause:
		h.Pause(min(f.For, s.Run-f.At))
	case Crash:
		h.Crash(min(f.For, s.Run-f.At))
	case Skew:
		h.Skew(f.PPM)
	}
}

func (w *Simulation) setNet(h *Host, up, down netsim.Settings) {
	if err := h.SetNet(up, down); err != nil {
		w.Failf("script", "%v", err)
	}
}

// settle ends the faults and goes on until the game is content.
func (w *Simulation) settle(g Game, end time.Duration) {
	if w.failure != nil {
		return
	}
	for _, h := range w.hosts {
		h.Wake()
		w.setNet(h, calmNet, calmNet)
	}
	g.Calm()
	for what := "the calm"; w.failure == nil; {
		if w.now >= end {
			w.Failf("settle", "not in time: %s", what)
			return
		}
		w.RunUntil(min(end, w.now+100*time.Millisecond))
		if what = g.Pending(); what == "" {
			return
		}
	}
}
