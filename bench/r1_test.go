package bench

import (
	"runtime"
	"testing"

	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/bench/internal/largeworld"
)

// BenchmarkR1 is a tick of a server with 100 connections and 50,000 actors, 2,000 relevant to each: none changes, a hundredth does, a
// tenth, none again, when keep-alives fall as they do after changes; or the players walk: by the CPU time of its thread. It is for profiles and for comparing two versions; bench/compare's workload r1 draws how
// it grows.
func BenchmarkR1(b *testing.B) {
	c, err := largeworld.New(largeworld.R1)
	if err != nil {
		b.Fatal(err)
	}
	c.Clock = cputime.Thread
	for _, s := range []struct {
		name string
		game func()
	}{
		{"idle", func() {}}, {"1%", func() { c.Change(largeworld.R1.Actors / 100) }}, {"10%", func() { c.Change(largeworld.R1.Actors / 10) }}, {"idle again", func() {}}, {"walking", c.Walk},
	} {
		b.Run(s.name, func(b *testing.B) {
			runtime.LockOSThread() // for cputime.Thread
			defer runtime.UnlockOSThread()
			f := c.Measure(20, b.N, s.game) // the clients' time counts for b.N, so that it stays bounded
			b.ReportMetric(float64(f.P50), "ns/op")
			b.ReportMetric(float64(f.Mean), "mean-ns/op")
			b.ReportMetric(float64(f.P99), "p99-ns/op")
			b.ReportMetric(f.Allocs, "server-allocs/op")
			b.ReportMetric(f.Updates, "updates/op")
			b.ReportMetric(f.Opens, "opens/op")
			b.ReportMetric(f.Bytes, "B-sent/op")
		})
	}
}

// BenchmarkWalking is the same server while players walk, by the CPU time of its thread: how much more than the median the slowest hundredth of
// ticks takes, and how many actors are opened and closed in a tick. -benchtime 600x is 20 s of the game; in the first five nothing is closed yet.
func BenchmarkWalking(b *testing.B) {
	runtime.LockOSThread() // for cputime.Thread
	defer runtime.UnlockOSThread()
	c, err := largeworld.New(largeworld.R1)
	if err != nil {
		b.Fatal(err)
	}
	c.Clock = cputime.Thread
	f := c.Measure(1, b.N, c.Walk)
	b.ReportMetric(float64(f.P50), "ns/op")
	b.ReportMetric(float64(f.Mean), "mean-ns/op")
	b.ReportMetric(float64(f.P99), "p99-ns/op")
	b.ReportMetric(float64(f.P99)/float64(f.P50), "p99/p50")
	for name, n := range map[string]uint64{"opened-p50": f.Opened.P50, "opened-p99": f.Opened.P99, "closed-p50": f.Closed.P50, "closed-p99": f.Closed.P99} {
		b.ReportMetric(float64(n), name)
	}
}
