package bench

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/bench/internal/largeworld"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// pair is two cores, each with half of the work, that notes what the second takes longer than the first. The second has a
// thread of its own.
type pair struct {
	longer time.Duration
	work   chan func()
	done   chan time.Duration
}

func newPair(b *testing.B) *pair {
	p := &pair{work: make(chan func()), done: make(chan time.Duration)}
	var running sync.WaitGroup
	running.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range p.work {
			began := cputime.Thread()
			f()
			p.done <- cputime.Thread() - began
		}
	})
	b.Cleanup(func() { close(p.work); running.Wait() })
	return p
}

func (*pair) Workers() int { return 2 }

func (p *pair) Run(n int, f func(i, worker int)) {
	half := func(worker int) {
		for i := worker * n / 2; i < (worker+1)*n/2; i++ {
			f(i, worker)
		}
	}
	p.work <- func() { half(1) }
	began := cputime.Thread()
	half(0)
	here := cputime.Thread() - began
	p.longer += max(0, <-p.done-here)
}

// steps is the worlds of BenchmarkStep and BenchmarkStepClock, and what their games do in a tick.
var steps = []struct {
	name string
	cfg  largeworld.Config
	game func(c *largeworld.Rig)
}{
	{"players=50", largeworld.Config{Conns: 50, Actors: 50, Relevant: 50}, func(c *largeworld.Rig) { c.Fly(50) }},
	{"players=100", largeworld.Config{Conns: 100, Actors: 100, Relevant: 100}, func(c *largeworld.Rig) { c.Fly(100) }},
	{"players=500", largeworld.Config{Conns: 500, Actors: 500, Relevant: 500}, func(c *largeworld.Rig) { c.Fly(500) }},
	{"R1", largeworld.R1, func(c *largeworld.Rig) { c.Change(5000) }},
	{"one", largeworld.Config{Conns: 1, Actors: 1000, Relevant: 1000}, func(c *largeworld.Rig) { c.Fly(1000) }},
}

// BenchmarkStep is a server's tick, acks and packets included, whose World's Step runs on one core and on two, in turns, each in
// a world of its own: the medians, and how many times faster two cores are. Times are the CPU time of the tick's goroutine, plus
// what the one beside it takes longer where both run. What else runs on the machine doesn't count, and neither does how long a
// core takes to begin.
func BenchmarkStep(b *testing.B) {
	two := newPair(b)
	benchSteps(b, two, true, func() time.Duration { return cputime.Thread() + two.longer })
}

// BenchmarkStepClock is the same by the clock, with driver.Cores: what else runs on the machine counts, and so does how long a core takes to begin.
func BenchmarkStepClock(b *testing.B) {
	began := time.Now()
	benchSteps(b, driver.Cores(2), false, func() time.Duration { return time.Since(began) })
}

// benchSteps measures by a clock, which may be its thread's own.
func benchSteps(b *testing.B, cores actorrep.Executor, ofThread bool, clock func() time.Duration) {
	for _, s := range steps {
		b.Run(s.name, func(b *testing.B) {
			if ofThread {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			rig := func(cores actorrep.Executor) *largeworld.Rig {
				cfg := s.cfg
				cfg.Parallel = cores
				c, err := largeworld.New(cfg)
				if err != nil {
					b.Fatal(err)
				}
				return c
			}
			alone, beside := rig(nil), rig(cores)
			took := map[string][]time.Duration{}
			step := func(name string, c *largeworld.Rig) {
				s.game(c)
				began := clock()
				c.Serve()
				took[name] = append(took[name], clock()-began)
				c.Answer()
			}
			turn := func() {
				step("1", alone)
				step("2", beside)
			}
			for range 20 {
				turn()
			}
			clear(took)
			b.ResetTimer()
			for range b.N {
				turn()
			}
			us := func(name string) float64 {
				list := took[name]
				slices.Sort(list)
				return float64(list[len(list)/2].Nanoseconds()) / 1000
			}
			b.ReportMetric(us("1"), "us/1-core")
			b.ReportMetric(us("2"), "us/2-cores")
			b.ReportMetric(us("1")/us("2"), "times-faster")
			b.ReportMetric(0, "ns/op")
		})
	}
}
