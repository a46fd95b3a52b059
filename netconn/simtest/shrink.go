package simtest

import (
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Shrink makes a failing script shorter: fewer faults, clients and options, milder links, less time, as long as the same checker still fails.
// It plays at most budget runs. After each shorter script it calls progress, which may be nil.
func Shrink(failed Result, budget int, play func(Script) Result, progress func(Result)) Result {
	best := failed
	for again := true; again && budget > 0; {
		again = false
		for _, smaller := range candidates(best.Script, best.Failure.At) {
			if budget--; budget < 0 {
				break
			}
			r := play(smaller)
			if r.Failure == nil || r.Failure.Checker != best.Failure.Checker {
				continue
			}
			best, again = r, true
			if progress != nil {
				progress(r)
			}
			break
		}
	}
	return best
}

// candidates is the scripts one step smaller, the largest steps first.
func candidates(s Script, failedAt time.Duration) (out []Script) {
	add := func(edit func(c *Script)) {
		c := s.clone()
		edit(&c)
		out = append(out, c)
	}
	without := func(from, to int) {
		add(func(c *Script) { c.Faults = append(c.Faults[:from], c.Faults[to:]...) })
	}
	if n := len(s.Faults); n > 1 {
		add(func(c *Script) { c.Faults = nil })
		without(0, n/2)
		without(n/2, n)
	}
	for i := range s.Faults {
		without(i, i+1)
	}
	if s.Clients > 1 {
		add(func(c *Script) { c.Clients = 1; c.dropFaults() })
		add(func(c *Script) { c.Clients--; c.dropFaults() })
	}
	if s.Servers > 1 {
		add(func(c *Script) { c.Servers--; c.dropFaults() })
	}
	for _, run := range []time.Duration{s.Run / 2, s.Run * 3 / 4, failedAt + 100*time.Millisecond} {
		if run = run.Round(time.Millisecond); run >= 100*time.Millisecond && run < s.Run*9/10 {
			add(func(c *Script) { c.Run = run })
		}
	}
	for i := range s.Options {
		add(func(c *Script) { c.Options = append(c.Options[:i], c.Options[i+1:]...) })
	}
	for _, milder := range milderNets(s.Net) {
		add(func(c *Script) { c.Net = milder })
	}
	for i := range s.Faults {
		for _, milder := range milderNets(s.Faults[i].Net) {
			add(func(c *Script) { c.Faults[i].Net = milder })
		}
	}
	return out
}

// dropFaults removes those of hosts that are no more.
func (s *Script) dropFaults() {
	kept := s.Faults[:0]
	for _, f := range s.Faults {
		if s.hasHost(f.Host) && (!f.takesOther() || s.hasHost(f.Other)) {
			kept = append(kept, f)
		}
	}
	s.Faults = kept
}

// milderNets is a link's settings with one thing less.
func milderNets(s netsim.Settings) (out []netsim.Settings) {
	for i, f := range netFields(&s) {
		c := s
		at := netFields(&c)[i].at
		switch v := f.at.(type) {
		case *time.Duration:
			if *v == 0 {
				continue
			}
			*at.(*time.Duration) = 0
		case *float64:
			if *v == 0 {
				continue
			}
			*at.(*float64) = 0
		case *int:
			if *v == 0 {
				continue
			}
			*at.(*int) = 0
		}
		if c.Validate() == nil {
			out = append(out, c)
		}
	}
	return out
}
