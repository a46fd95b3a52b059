package largeworld

import (
	"runtime"
	"slices"
	"time"
)

// Figures is what the server's ticks took; all but the times and what was opened and closed are averages of a tick.
type Figures struct {
	Mean, P50, P99 time.Duration
	Opened, Closed Quantiles
	Updates, Opens float64
	Allocs, Bytes  float64
	Seen           float64 // by a connection
}

// Quantiles is of how many there were in a tick.
type Quantiles struct{ P50, P99 uint64 }

func quantiles(counts []uint64) Quantiles {
	slices.Sort(counts)
	return Quantiles{counts[len(counts)/2], counts[len(counts)*99/100]}
}

// Measure runs some ticks that don't count and some that do. Each is what the game does, the server's and the clients'; only the
// server's is measured, by Clock.
func (c *Rig) Measure(warm, ticks int, game func()) Figures {
	for range warm {
		game()
		c.Serve()
		c.Answer()
	}
	f := Figures{Seen: c.Seen()}
	var before, after runtime.MemStats
	mallocs, sent := uint64(0), c.sent
	times, opened, closed := make([]time.Duration, 0, ticks), make([]uint64, 0, ticks), make([]uint64, 0, ticks)
	was := c.world.Counters
	for range ticks {
		game()
		runtime.ReadMemStats(&before)
		counted, start := c.world.Counters, c.Clock()
		c.Serve()
		took := c.Clock() - start
		f.Mean += took / time.Duration(ticks)
		times = append(times, took)
		runtime.ReadMemStats(&after)
		opened = append(opened, c.world.Counters.Opened-counted.Opened)
		closed = append(closed, c.world.Counters.Closed-counted.Closed)
		mallocs += after.Mallocs - before.Mallocs
		c.Answer()
	}
	slices.Sort(times) // the middle one tells more than the mean on a machine that is busy with other things
	f.P50, f.P99 = times[len(times)/2], times[len(times)*99/100]
	f.Opened, f.Closed = quantiles(opened), quantiles(closed)
	n := float64(ticks)
	f.Allocs, f.Bytes = float64(mallocs)/n, float64(c.sent-sent)/n
	f.Updates, f.Opens = float64(c.world.Counters.Updates-was.Updates)/n, float64(c.world.Counters.Opened-was.Opened)/n
	return f
}
