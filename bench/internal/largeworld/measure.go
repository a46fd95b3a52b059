package largeworld

import (
	"runtime"
	"slices"
	"time"
)

// Figures is what the server's ticks took; all but the times are averages of a tick.
type Figures struct {
	P50, P99       time.Duration
	Updates, Opens float64
	Allocs, Bytes  float64
	Seen           float64 // by a connection
}

// Measure runs some ticks that don't count and some that do. Each is what the game does, the server's and the clients'; only the
// server's is measured.
func (c *Rig) Measure(warm, ticks int, game func()) Figures {
	for range warm {
		game()
		c.Serve()
		c.Answer()
	}
	f := Figures{Seen: c.Seen()}
	var before, after runtime.MemStats
	mallocs, sent := uint64(0), c.sent
	times := make([]time.Duration, 0, ticks)
	was := c.world.Counters
	for range ticks {
		game()
		runtime.ReadMemStats(&before)
		start := time.Now()
		c.Serve()
		times = append(times, time.Since(start))
		runtime.ReadMemStats(&after)
		mallocs += after.Mallocs - before.Mallocs
		c.Answer()
	}
	slices.Sort(times) // the middle one tells more than the mean on a machine that is busy with other things
	f.P50, f.P99 = times[len(times)/2], times[len(times)*99/100]
	n := float64(ticks)
	f.Allocs, f.Bytes = float64(mallocs)/n, float64(c.sent-sent)/n
	f.Updates, f.Opens = float64(c.world.Counters.Updates-was.Updates)/n, float64(c.world.Counters.Opened-was.Opened)/n
	return f
}
