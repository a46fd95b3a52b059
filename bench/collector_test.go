package bench

import (
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/bunchnet/bunchnet/bench/internal/largeworld"
)

// BenchmarkCollector is what the collector takes of servers of three sizes, with a game that makes 1 MB of garbage a tick, at 30 ticks a second: the memory
// that is in use, the most that the process has of the system, the share of a core that collects, and collections a minute. Ticks follow each other without a
// pause, so only their number is the game's time.
func BenchmarkCollector(b *testing.B) {
	for _, s := range []struct {
		name string
		cfg  largeworld.Config
	}{
		{"small", largeworld.Config{Conns: 16, Actors: 500, Relevant: 100}},
		{"medium", largeworld.Config{Conns: 100, Actors: 2000, Relevant: 400}},
		{"large", largeworld.Config{Conns: 200, Actors: 5000, Relevant: 1000}},
	} {
		c, err := largeworld.New(s.cfg)
		if err != nil {
			b.Fatal(err)
		}
		play(c, len(garbage))
		debug.FreeOSMemory()
		live := readCollector().memory
		for _, set := range []struct {
			name  string
			gogc  int
			limit float64 // times what is live
		}{
			{"GOGC=100", 100, 0},
			{"GOGC=400", 400, 0},
			{"GOGC=400 GOMEMLIMIT=2", 400, 2},
			{"GOGC=400 GOMEMLIMIT=1.2", 400, 1.2},
		} {
			limit := int64(math.MaxInt64)
			if set.limit > 0 {
				limit = int64(set.limit * live)
			}
			b.Run(fmt.Sprintf("%s/%s", s.name, set.name), func(b *testing.B) { collects(b, c, set.gogc, limit) })
		}
	}
}

// play is so many ticks, and returns the most memory.
func play(c *largeworld.Rig, ticks int) (most float64) {
	for i := range ticks {
		made := make([][]byte, 1024)
		for k := range made {
			made[k] = make([]byte, 1000)
		}
		garbage[i%len(garbage)] = made
		c.Change(10)
		c.Serve()
		c.Answer()
		most = max(most, readCollector().memory)
	}
	return most
}

// garbage keeps what a game makes in the last 8 ticks.
var garbage [8][][]byte

func collects(b *testing.B, c *largeworld.Rig, gogc int, limit int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(gogc))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	debug.FreeOSMemory()
	before := readCollector()
	b.ResetTimer()
	most := play(c, b.N)
	after, seconds := readCollector(), float64(b.N)/largeworld.Rate
	b.ReportMetric((after.cpu-before.cpu)/seconds*100, "core-%")
	b.ReportMetric(float64(after.cycles-before.cycles)/seconds*60, "collections/min")
	b.ReportMetric(before.memory/1e6, "live-MB")
	b.ReportMetric(most/1e6, "most-MB")
	b.ReportMetric(0, "ns/op")
}

// collector is what the runtime says of it, since the program began.
type collector struct {
	cycles      uint64
	cpu, memory float64 // seconds; bytes that the system has given and not got back
}

func readCollector() collector {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return collector{s[0].Value.Uint64(), s[1].Value.Float64(), float64(s[2].Value.Uint64() - s[3].Value.Uint64())}
}
