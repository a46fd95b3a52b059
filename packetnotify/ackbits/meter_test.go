package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRoundTripsAreSmoothed: each sample moves the average by the weight, and the jitter towards its distance from that.
func TestRoundTripsAreSmoothed(t *testing.T) {
	ms := time.Millisecond
	m := meter{weight: 0.25}
	for _, v := range []struct{ sample, rtt, jitter, least time.Duration }{
		{100 * ms, 100 * ms, 0, 100 * ms}, {180 * ms, 120 * ms, 20 * ms, 100 * ms}, {60 * ms, 105 * ms, 30 * ms, 60 * ms}} {
		m.roundTrip(v.sample)
		require.Equal(t, [3]time.Duration{v.rtt, v.jitter, v.least}, [3]time.Duration{m.rtt, m.jitter, m.minRTT})
	}
}

// TestNoRoundTripBelowZero: one in which the clock was set back is no sample.
func TestNoRoundTripBelowZero(t *testing.T) {
	m := meter{weight: 0.5}
	m.roundTrip(-time.Second)
	require.False(t, m.sampled)
	m.roundTrip(time.Second)
	m.roundTrip(-time.Hour)
	require.Equal(t, [3]time.Duration{time.Second, 0, time.Second}, [3]time.Duration{m.rtt, m.jitter, m.minRTT})
}

// TestRatesBeginWithTheFirstCall: time before it isn't counted, and a clock that goes back closes no interval.
func TestRatesBeginWithTheFirstCall(t *testing.T) {
	m := meter{weight: 0.5, sent: 1250} // 100 kbit/s for an interval
	m.advance(time.Hour)
	require.Zero(t, m.sentKbps)
	m.advance(time.Hour + meterInterval - 1)
	require.Zero(t, m.sentKbps)
	m.advance(time.Hour + meterInterval)
	require.InDelta(t, 50, m.sentKbps, 1e-9)
	require.Zero(t, m.sent)
	m.advance(time.Minute)
	m.advance(time.Hour + 2*meterInterval - 1)
	require.InDelta(t, 50, m.sentKbps, 1e-9)
	m.advance(time.Hour + 3*meterInterval)
	require.InDelta(t, 12.5, m.sentKbps, 1e-9)
}

// TestFiguresAreOfTheLastCall: each call with a time closes the intervals before it, and what is received is counted.
func TestFiguresAreOfTheLastCall(t *testing.T) {
	a, b, _ := pair(t)
	p, _ := a.Send(0, nil, 1000)
	packet := append(p, make([]byte, 1000)...)
	_, _, err := b.Receive(0, packet)
	require.NoError(t, err)
	s := b.Stats()
	require.Equal(t, [2]uint64{1, uint64(len(packet))}, [2]uint64{s.PacketsReceived, s.BytesReceived})
	require.Zero(t, a.Stats().SentKbps)
	a.Send(meterInterval, nil, 0)
	require.Positive(t, a.Stats().SentKbps)
	q, _ := a.Send(meterInterval, nil, 0)
	require.Zero(t, b.Stats().ReceivedKbps)
	_, _, err = b.Receive(meterInterval, q)
	require.NoError(t, err)
	require.Positive(t, b.Stats().ReceivedKbps)
}
