package bench

import (
	"testing"

	"github.com/bunchnet/bunchnet/bench/internal/largeworld"
)

// BenchmarkR1 is a tick of a server with 100 connections and 50,000 actors, 2,000 relevant to each: none changes, a hundredth does, a
// tenth; or the players walk. It is for profiles and for comparing two versions; bench/compare's workload r1 draws how
// it grows.
func BenchmarkR1(b *testing.B) {
	c, err := largeworld.New(largeworld.R1)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range []struct {
		name string
		game func()
	}{
		{"idle", func() {}}, {"1%", func() { c.Change(largeworld.R1.Actors / 100) }}, {"10%", func() { c.Change(largeworld.R1.Actors / 10) }}, {"walking", c.Walk},
	} {
		b.Run(s.name, func(b *testing.B) {
			f := c.Measure(20, b.N, s.game) // the clients' time counts for b.N, so that it stays bounded
			b.ReportMetric(float64(f.P50), "ns/op")
			b.ReportMetric(float64(f.P99), "p99-ns/op")
			b.ReportMetric(f.Allocs, "server-allocs/op")
			b.ReportMetric(f.Updates, "updates/op")
			b.ReportMetric(f.Opens, "opens/op")
			b.ReportMetric(f.Bytes, "B-sent/op")
		})
	}
}
