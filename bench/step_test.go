package bench

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/bench/internal/largeworld"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// pair is one core or two, in turns, and notes what the second takes longer than the first.
type pair struct {
	driver.Cores
	longer time.Duration
}

func (*pair) Workers() int { return 2 }

func (p *pair) Run(n int, f func(i, worker int)) {
	if p.Cores == 1 {
		p.Cores.Run(n, f)
		return
	}
	work := func(worker int) time.Duration {
		began := cputime.Thread()
		for i := worker; i < n; i += 2 {
			f(i, worker)
		}
		return cputime.Thread() - began
	}
	var beside time.Duration
	var running sync.WaitGroup
	running.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		beside = work(1)
	})
	here := work(0)
	running.Wait()
	p.longer += max(0, beside-here)
}

// BenchmarkStep is a server's tick, acks and packets included, whose World's Step runs on one core and on two, in turns, in
// the same world, beside a world without actorrep.Config.Parallel: the medians, and how many times faster two cores are
// than that. Times are the CPU time of the tick's goroutine, plus what the one beside it takes longer where both run: what
// else runs on the machine doesn't count.
func BenchmarkStep(b *testing.B) {
	for _, s := range []struct {
		name string
		cfg  largeworld.Config
		game func(c *largeworld.Rig)
	}{
		{"players=100", largeworld.Config{Conns: 100, Actors: 100, Relevant: 100}, func(c *largeworld.Rig) { c.Fly(100) }},
		{"players=500", largeworld.Config{Conns: 500, Actors: 500, Relevant: 500}, func(c *largeworld.Rig) { c.Fly(500) }},
		{"R1", largeworld.R1, func(c *largeworld.Rig) { c.Change(5000) }},
		{"one", largeworld.Config{Conns: 1, Actors: 1000, Relevant: 1000}, func(c *largeworld.Rig) { c.Fly(1000) }},
	} {
		b.Run(s.name, func(b *testing.B) {
			runtime.LockOSThread() // for cputime.Thread
			defer runtime.UnlockOSThread()
			two := &pair{Cores: 2}
			rig := func(parallel bool) *largeworld.Rig {
				cfg := s.cfg
				if parallel {
					cfg.Parallel = two
				}
				c, err := largeworld.New(cfg)
				if err != nil {
					b.Fatal(err)
				}
				c.Clock = func() time.Duration { return cputime.Thread() + two.longer }
				return c
			}
			alone, c := rig(false), rig(true)
			took := map[string][]time.Duration{}
			step := func(name string, c *largeworld.Rig) {
				s.game(c)
				began := c.Clock()
				c.Serve()
				took[name] = append(took[name], c.Clock()-began)
				c.Answer()
			}
			turn := func() {
				step("alone", alone)
				for two.Cores = 1; two.Cores <= 2; two.Cores++ {
					step(fmt.Sprint(int(two.Cores)), c)
				}
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
			b.ReportMetric(us("alone"), "us/alone")
			b.ReportMetric(us("1"), "us/1-core")
			b.ReportMetric(us("2"), "us/2-cores")
			b.ReportMetric(us("alone")/us("2"), "times-faster")
			b.ReportMetric(0, "ns/op")
		})
	}
}
