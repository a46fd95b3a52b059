package driver

import (
	"math/bits"
	"time"
)

// TickTimes says how long a driver's ticks took since its start, by the machine's clock.
type TickTimes struct {
	Count uint64
	// Dispatch and Flush are the total times of TickDispatch and TickFlush; Step is that of the game's work between
	// them.
	Dispatch, Step, Flush time.Duration
	// Below counts ticks by the sum of the three: Below[0] those under 1 µs, Below[n] those from 2^(n-1) to 2^n µs, the
	// last all longer ones.
	Below [TickBuckets]uint64
}

// TickBuckets is the length of TickTimes.Below; the last but one counts ticks up to 4 s.
const TickBuckets = 24

// TickTimes returns a copy of the current values. It belongs to the goroutine that ticks the driver.
func (d *Driver) TickTimes() TickTimes { return d.ticks.TickTimes }

// tickClock measures ticks. A TickDispatch without its TickFlush, or the other way round, isn't counted.
type tickClock struct {
	TickTimes
	began, dispatched time.Time // of the tick under way; dispatched is zero outside of one
}

func (t *tickClock) begin() { t.began, t.dispatched = time.Now(), time.Time{} }

func (t *tickClock) dispatchDone() { t.dispatched = time.Now() }

// flush counts the tick that TickFlush, which began at from, ends.
func (t *tickClock) flush(from time.Time) {
	if t.dispatched.IsZero() {
		return
	}
	now := time.Now()
	t.Count++
	t.Dispatch += t.dispatched.Sub(t.began)
	t.Step += from.Sub(t.dispatched)
	t.Flush += now.Sub(from)
	t.Below[min(bits.Len64(uint64(max(0, now.Sub(t.began).Microseconds()))), TickBuckets-1)]++
	t.dispatched = time.Time{}
}
