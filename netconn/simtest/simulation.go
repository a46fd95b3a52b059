package simtest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// Epoch is the time of day at which every simulation begins.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Failure is a broken promise that a checker found.
type Failure struct {
	At      time.Duration
	Checker string
	Text    string
}

// String returns the failure as one line.
func (f *Failure) String() string { return fmt.Sprintf("%v: %s: %s", f.At, f.Checker, f.Text) }

// Counters counts what happened in a simulation.
type Counters struct {
	Ticks                                  uint64 // of programs
	Sent, Bytes, Delivered                 uint64 // datagrams
	Lost, Duplicated, Reordered, Corrupted uint64
	QueueFull, TooBig                      uint64
	Cut, NoHost, InboxFull                 uint64 // dropped by a partition, for nobody, by a full socket
	Boots, Crashes, Pauses, Rebinds, Cuts  uint64
}

// Simulation holds the hosts, the network and the virtual time. It isn't safe for concurrent use. Different simulations may run concurrently.
type Simulation struct {
	Counters Counters

	seed    uint64
	now     time.Duration
	hosts   []*Host
	net     network
	actions []action
	boot    func(h *Host) (Program, error)
	hash    hash
	failure *Failure
	only    []string
}

type action struct {
	at time.Duration
	do func()
}

// NewSimulation returns a simulation without hosts. boot starts the program of each host that is added.
func NewSimulation(seed uint64, boot func(h *Host) (Program, error)) *Simulation {
	w := &Simulation{seed: seed, boot: boot, hash: newHash()}
	w.net.init(w)
	return w
}

// Now returns the time since the simulation began.
func (w *Simulation) Now() time.Duration { return w.now }

// Hash returns a hash of all datagrams so far: the times they were sent and arrived, their addresses and their bytes.
func (w *Simulation) Hash() uint64 { return uint64(w.hash) }

// AddToHash adds bytes to Hash: what passes between hosts other than by datagrams.
func (w *Simulation) AddToHash(p []byte) { w.hash.datagram('x', w.now, 0, 0, p) }

// Hosts returns all hosts in the order they were added.
func (w *Simulation) Hosts() []*Host { return w.hosts }

// Host returns the host with a name, or nil.
func (w *Simulation) Host(name string) *Host {
	for _, h := range w.hosts {
		if h.name == name {
			return h
		}
	}
	return nil
}

// Rand returns a source of randomness for a purpose. The same seed and purpose give the same numbers.
func (w *Simulation) Rand(purpose string) Rand {
	h := newHash()
	h.write([]byte(purpose))
	return NewRand(w.seed, uint64(h))
}

// Failure returns the first failure, or nil.
func (w *Simulation) Failure() *Failure { return w.failure }

// Only ignores the failures of all checkers but these.
func (w *Simulation) Only(checkers ...string) { w.only = checkers }

// Failf reports a failure. The first one ends the run.
func (w *Simulation) Failf(checker, format string, args ...any) {
	if w.only != nil && !slices.Contains(w.only, checker) {
		return
	}
	if w.failure == nil {
		w.failure = &Failure{w.now, checker, fmt.Sprintf(format, args...)}
	}
}

// At calls f at a time, before anything else that happens at that time. Calls for the same time are made in the order they were added.
func (w *Simulation) At(at time.Duration, f func()) {
	i := len(w.actions)
	for i > 0 && w.actions[i-1].at > at {
		i--
	}
	w.actions = append(w.actions, action{})
	copy(w.actions[i+1:], w.actions[i:])
	w.actions[i] = action{at, f}
}

// RunUntil runs the simulation until a time or a failure.
func (w *Simulation) RunUntil(end time.Duration) {
	defer func() {
		if r := recover(); r != nil {
			w.Failf("panic", "%v\n%s", r, debug.Stack())
		}
	}()
	for w.failure == nil && w.step(end) {
	}
	if w.failure == nil {
		w.now = end
	}
}

// step does what is next before end, if anything.
func (w *Simulation) step(end time.Duration) bool {
	var next *Host
	for _, h := range w.hosts {
		if next == nil || h.next < next.next {
			next = h
		}
	}
	if len(w.actions) > 0 && (next == nil || w.actions[0].at <= next.next) {
		a := w.actions[0]
		if a.at > end {
			return false
		}
		w.actions = w.actions[1:]
		w.now = max(w.now, a.at)
		a.do()
		return true
	}
	if next == nil || next.next > end {
		return false
	}
	w.now = next.next
	next.run()
	return true
}
