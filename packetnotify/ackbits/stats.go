package ackbits

import (
	"math/bits"
	"time"
)

// Stats is a snapshot of counters and averages.
type Stats struct {
	PacketsSent, PacketsReceived, PacketsAcked uint64
	BytesSent, BytesReceived, BytesAcked       uint64 // headers included
	PacketsLost                                uint64 // not acked in time
	AckedLate                                  uint64 // of the lost ones

	RefusedShort, RefusedStale, RefusedDuplicate, RefusedAckAhead uint64

	RTT    time.Duration // smoothed round trip, the peer's wait for its next packet included; 0 when unknown
	Jitter time.Duration // smoothed deviation from it
	MinRTT time.Duration // smallest sample; 0 when unknown
	Loss   float64       // lost share of the last 256 packets whose fate is decided, 0 to 1

	SentKbps, ReceivedKbps, AckedKbps float64 // kbit/s, smoothed
}

// Stats returns a snapshot as of the last call with a time.
func (e *Endpoint) Stats() Stats {
	s, m := e.stats, &e.meter
	s.RTT, s.Jitter, s.MinRTT = m.rtt, m.jitter, m.minRTT
	s.Loss = m.loss.share()
	s.SentKbps, s.ReceivedKbps, s.AckedKbps = m.sentKbps, m.receivedKbps, m.ackedKbps
	return s
}

const (
	meterInterval = 100 * time.Millisecond
	// meterIdle intervals without a call have smoothed any rate to nothing.
	meterIdle = 256
)

// meter smooths what is measured. Bandwidth is counted over intervals of 100 ms.
type meter struct {
	weight              float64
	rtt, jitter, minRTT time.Duration
	sampled             bool // there is a round trip
	loss                fates

	started                           bool
	start                             time.Duration // of the interval being counted
	sent, received, acked             int           // bytes in it
	sentKbps, receivedKbps, ackedKbps float64
}

func (m *meter) roundTrip(sample time.Duration) {
	if sample < 0 {
		return // the clock was set back meanwhile
	}
	if !m.sampled {
		m.sampled, m.rtt, m.minRTT = true, sample, sample
		return
	}
	m.minRTT = min(m.minRTT, sample)
	d := sample - m.rtt
	m.rtt += time.Duration(float64(d) * m.weight)
	m.jitter += time.Duration(float64(d.Abs()-m.jitter) * m.weight)
}

// advance closes the intervals that have passed.
func (m *meter) advance(now time.Duration) {
	if !m.started {
		m.started, m.start = true, now
	}
	passed := int64((now - m.start) / meterInterval)
	if passed <= 0 {
		return
	}
	m.start += time.Duration(passed) * meterInterval
	for range min(passed, meterIdle) {
		m.smooth(&m.sentKbps, &m.sent)
		m.smooth(&m.receivedKbps, &m.received)
		m.smooth(&m.ackedKbps, &m.acked)
	}
}

func (m *meter) smooth(kbps *float64, bytes *int) {
	rate := float64(*bytes) * 8 / 1000 / meterInterval.Seconds()
	*kbps += (rate - *kbps) * m.weight
	*bytes = 0
}

// fates holds a bit for each of the last 256 packets: set when lost.
type fates struct {
	lost [4]uint64
	n    int // pushed, up to twice the size
}

func (f *fates) push(lost bool) {
	i := f.n & 255
	bit := uint64(1) << (i & 63)
	f.lost[i>>6] &^= bit
	if lost {
		f.lost[i>>6] |= bit
	}
	if f.n++; f.n == 512 {
		f.n = 256
	}
}

func (f *fates) share() float64 {
	if f.n == 0 {
		return 0
	}
	lost := 0
	for _, w := range f.lost {
		lost += bits.OnesCount64(w)
	}
	return float64(lost) / float64(min(f.n, 256))
}
