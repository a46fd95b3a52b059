package netclock

import (
	"fmt"
	"time"
)

// Accumulator turns frames of any length into ticks of one length. Ticks are at multiples of the interval, so they are
// at the same times at every end with the same clock. Not safe for concurrent use.
//
//	for n := ticks.Advance(now); n > 0; n-- { game.step(ticks.At(n), interval) }
//	draw between the last two ticks, by ticks.Alpha(now)
type Accumulator struct {
	Skipped uint64 // ticks left out after long frames

	interval time.Duration
	most     int
	last     time.Duration // time of the last tick
	started  bool
}

// NewAccumulator returns an Accumulator. interval is the length of a tick, 100 µs to a minute. most is how many ticks a
// frame runs at most, 1 to 4096; after a longer frame the oldest ticks are left out, so that a game that can't keep up
// doesn't fall behind more and more.
func NewAccumulator(interval time.Duration, most int) (*Accumulator, error) {
	if interval < 100*time.Microsecond || interval > time.Minute || most < 1 || most > 4096 {
		return nil, fmt.Errorf("%w: an Accumulator of %v, at most %d a frame; give 100 µs to a minute, and 1 to 4096", ErrConfig, interval, most)
	}
	return &Accumulator{interval: interval, most: most}, nil
}

// Advance returns how many ticks have become due by now. The first call starts the count and returns 0. So does a now
// before an earlier one.
func (a *Accumulator) Advance(now time.Duration) int {
	due := now - now%a.interval
	if !a.started {
		a.started, a.last = true, due
	}
	n := max(int((due-a.last)/a.interval), 0)
	a.last = max(a.last, due)
	if n > a.most {
		a.Skipped += uint64(n - a.most)
		n = a.most
	}
	return n
}

// At is the time of the n-th last tick; At(1) is the last.
func (a *Accumulator) At(n int) time.Duration { return a.last - time.Duration(n-1)*a.interval }

// Alpha is the fraction of a tick that has passed since the last one, 0 to 1. For movement that is smooth at any frame
// rate, draw the state between the last two ticks: Alpha of the way from the second last to the last.
func (a *Accumulator) Alpha(now time.Duration) float64 {
	return min(max(float64(now-a.last)/float64(a.interval), 0), 1)
}
