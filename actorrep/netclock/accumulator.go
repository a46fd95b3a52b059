package netclock

import (
	"fmt"
	"time"
)

// Accumulator turns frames, however long and uneven, into ticks of one length: the ticks are at the multiples of its interval, so that they are the same
// wherever the time is. Not safe for concurrent use.
//
//	for n := ticks.Advance(now); n > 0; n-- { game.step(ticks.At(n), interval) }
//	draw between the last two ticks, by ticks.Alpha(now)
type Accumulator struct {
	Skipped uint64 // ticks that were left out after long frames

	interval time.Duration
	most     int
	last     time.Duration // of the ticks
	started  bool
}

// NewAccumulator returns one of ticks of a length, 100 µs to a minute, of which a frame makes at most so many, 1 to 4096: after a longer frame the
// ticks before those are left out, so that a game that can't keep up doesn't fall behind further and further.
func NewAccumulator(interval time.Duration, most int) (*Accumulator, error) {
	if interval < 100*time.Microsecond || interval > time.Minute || most < 1 || most > 4096 {
		return nil, fmt.Errorf("%w: an Accumulator of %v, at most %d a frame; give 100 µs to a minute, and 1 to 4096", ErrConfig, interval, most)
	}
	return &Accumulator{interval: interval, most: most}, nil
}

// Advance is how many ticks are due at now that weren't yet. The first call only says from when on. At a now before an earlier one none is.
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

// At is the time of the n-th last tick; the last one's is At(1).
func (a *Accumulator) At(n int) time.Duration { return a.last - time.Duration(n-1)*a.interval }

// Alpha is the share of a tick that has passed since the last one, 0 to 1: what is drawn at 1-Alpha of the way back from it to the one before moves
// evenly at any frame rate.
func (a *Accumulator) Alpha(now time.Duration) float64 {
	return min(max(float64(now-a.last)/float64(a.interval), 0), 1)
}
