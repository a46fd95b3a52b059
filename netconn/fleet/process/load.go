package process

import (
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/fleet"
)

// loadEvery is the time between two measurements of a driver's load, and how much each of them covers.
const loadEvery = time.Second

// meter measures the load of a driver.
type meter struct {
	at          time.Duration
	times       driver.TickTimes
	bytes       [2]uint64 // out, in
	measured    fleet.Load
	hasMeasured bool
}

// load returns the load of the last second or two.
func (m *meter) load(now time.Duration, d *driver.Driver) fleet.Load {
	m.measured.Connections = d.Len()
	passed := now - m.at
	if m.hasMeasured && passed < loadEvery {
		return m.measured
	}
	t, bytes := d.TickTimes(), [2]uint64{d.Counters.BytesOut, d.Counters.BytesIn}
	if m.hasMeasured {
		m.measured.TickP99 = p99(&m.times, &t)
		m.measured.BytesOut = int64(float64(bytes[0]-m.bytes[0]) / passed.Seconds())
		m.measured.BytesIn = int64(float64(bytes[1]-m.bytes[1]) / passed.Seconds())
	}
	m.at, m.times, m.bytes, m.hasMeasured = now, t, bytes, true
	return m.measured
}

// p99 returns the upper end of the bucket that the 99th percentile of the ticks between two measurements is in.
func p99(from, to *driver.TickTimes) time.Duration {
	all, above := to.Count-from.Count, uint64(0)
	for n := len(to.Below) - 1; n >= 0; n-- {
		above += to.Below[n] - from.Below[n]
		if all > 0 && above*100 > all {
			return time.Microsecond << n
		}
	}
	return 0
}
