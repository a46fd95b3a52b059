package simtest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// Epoch is the time of day at which every world begins.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Failure is what a checker found.
type Failure struct {
	At      time.Duration
	Checker string
	Text    string
}

// String is the failure as a line.
func (f *Failure) String() string { return fmt.Sprintf("%v: %s: %s", f.At, f.Checker, f.Text) }

// Counters is what happened in a world.
type Counters struct {
	Ticks                                  uint64 // of programs
	Sent, Bytes, Delivered                 uint64 // datagrams
	Lost, Duplicated, Reordered, Corrupted uint64
	QueueFull, TooBig                      uint64
	Cut, NoHost, InboxFull                 uint64 // dropped by a partition, for nobody, by a full socket
	Boots, Crashes, Pauses, Rebinds, Cuts  uint64
}

// Simulation is the hosts, the network and the time. Not safe for concurrent use; any number of worlds may run
// beside each other.
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

// NewSimulation returns an empty simulation whose hosts start with boot.
func NewSimulation(seed uint64, boot func(h *Host) (Program, error)) *Simulation {
	w := &Simulation{seed: seed, boot: boot, hash: newHash()}
	w.net.init(w)
	return w
}

// Now is the time since the world began.
func (w *Simulation) Now() time.Duration { return w.now }

// Hash is of all datagrams so far: when they left and arrived, whence and where to, and their bytes.
func (w *Simulation) Hash() uint64 { return uint64(w.hash) }

// Hosts is all hosts in the order they were added.
func (w *Simulation) Hosts() []*Host { return w.hosts }

// Host is the host of a name, or nil.
func (w *Simulation) Host(name string) *Host {
	for _, h := range w.hosts {
		if h.name == name {
			return h
		}
	}
	return nil
}

// Rand is a source of randomness for the purpose of that name, the same for the same seed.
func (w *Simulation) Rand(purpose string) Rand {
	h := newHash()
	h.write([]byte(purpose))
	return NewRand(w.seed, uint64(h))
}

// Failure is what a checker found first, or nil.
func (w *Simulation) Failure() *Failure { return w.failure }

// Only makes the findings of other checkers than these count for nothing.
func (w *Simulation) Only(checkers ...string) { w.only = checkers }

// Failf reports what a checker found. The first one ends the run.
func (w *Simulation) Failf(checker, format string, args ...any) {
	if w.only != nil && !slices.Contains(w.only, checker) {
		return
	}
	if w.failure == nil {
		w.failure = &Failure{w.now, checker, fmt.Sprintf(format, args...)}
	}
}

// At calls f at a time, before what else happens then. Those of one time are called in the order given.
func (w *Simulation) At(at time.Duration, f func()) {
	i := len(w.actions)
	for i > 0 && w.actions[i-1].at > at {
		i--
	}
	w.actions = append(w.actions, action{})
	copy(w.actions[i+1:], w.actions[i:])
	w.actions[i] = action{at, f}
}

// RunUntil goes on until a time, or a failure.
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
