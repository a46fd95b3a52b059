package driver

import (
	"math/bits"
	"time"
)

// TickTimes says how long a driver's ticks took since its start, by the machine's clock.
type TickTimes struct {
	// Count is the number of ticks: a TickDispatch and the TickFlush after it are one. A TickDispatch or TickFlush without the other isn't counted,
	// nor is its time.
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

// half is the calls of TickDispatch, or of TickFlush, since the last one of the other.
type half struct {
	calls int
	since time.Duration
	told  bool
}

// alone is the calls in a row, over longestTick or more, after which the other half of the tick counts as forgotten.
const alone = 100

// forgotten counts a call of one half of the tick, and warns once when the other half isn't called.
func (d *Driver) forgotten(called, other *half, now time.Time, msg string) {
	other.calls = 0
	at := d.Time(now)
	if called.calls == 0 {
		called.since = at
	}
	if called.calls++; called.calls > alone && at-called.since >= longestTick && d.logged && !called.told && !d.ended {
		called.told = true
		d.cfg.Logger.Warn(msg)
	}
}
