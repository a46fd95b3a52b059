package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEndOfARound: a round ends with the feedback on the last packet that had been sent when it began, after a time if it knows a round trip time, or at once where that has risen far; and none ends that hasn't begun.
func TestEndOfARound(t *testing.T) {
	const long = time.Second
	for name, v := range map[string]struct {
		closed, done, low bool
		recent, base      time.Duration
		drains            bool
		sendGap           time.Duration
		took              time.Duration
		ends              bool
	}{
		"done":                     {done: true, took: minRound, ends: true},
		"done too soon":            {done: true, took: minRound - 1},
		"long":                     {low: true, took: long, ends: true},
		"not long":                 {low: true, took: minRound},
		"long, without feedback":   {took: long},
		"longer than it was":       {recent: 71 * ms, base: 50 * ms, took: minRound, ends: true},
		"a little longer":          {recent: 70 * ms, base: 50 * ms, took: minRound},
		"longer, for less":         {recent: 71 * ms, base: 50 * ms, took: minRound - 1},
		"nobody knows what it was": {recent: 71 * ms, took: minRound},
		"longer, as known":         {recent: 71 * ms, base: 50 * ms, drains: true, took: minRound},
		"of few bursts":            {low: true, base: time.Second, sendGap: 100 * ms, took: 300 * ms},
		"of more":                  {low: true, base: time.Second, sendGap: 100 * ms, took: 300*ms + 1, ends: true},
		"none":                     {closed: true, recent: 71 * ms, base: 50 * ms, took: long},
	} {
		a := adaptive(t)
		a.round.begin(time.Minute, 1, false)
		a.round.open, a.round.done = !v.closed, v.done
		if v.low {
			a.round.low = 50 * ms
		}
		a.recent.lows = [3]time.Duration{v.recent, v.recent, v.recent}
		if v.base > 0 {
			a.queue.base.set(0, v.base)
		}
		a.sendGap, a.full, a.wants = v.sendGap, true, true
		if v.drains {
			a.phase = Drain
		}
		a.lastFeedback = time.Minute + v.took
		a.settle(a.lastFeedback)
		require.Equal(t, v.ends, a.out.n == 1, name)
		require.Equal(t, v.ends && !v.done, a.queue.n == 1, "%s: what was done without a round trip time says nothing of it", name)
		require.Equal(t, v.ends, a.pacer.last == a.lastFeedback, "%s: the time until then has the rate of then", name)
		require.Equal(t, !v.ends, a.full && a.wants, name)
		require.Equal(t, !v.ends, a.full || a.wants, name)
		require.Equal(t, !v.ends && !v.closed, a.round.open, "%s: another one begins with what is sent", name)
	}
}

// TestQuietRounds: eight rounds in a row in which an application that leaves credit unused sends less than MinRate say how long the path is; one in which more is sent, or what there was credit for, begins the count anew.
func TestQuietRounds(t *testing.T) {
	a := adaptive(t)
	a.queue.base.set(0, 20*ms)
	a.lastFeedback = time.Second
	round := func(idle bool, acked, lost int) {
		a.round.begin(a.lastFeedback, 1, false)
		a.round.done, a.round.low, a.round.first, a.round.acked, a.round.lost = true, 25*ms, 1, acked, lost
		a.idle, a.full = -1, true
		if idle {
			a.idle = 1
		}
		a.lastFeedback += 100 * ms
		a.settle(a.lastFeedback)
	}
	for _, v := range []struct {
		idle        bool
		acked, lost int
		quiet       int
	}{{true, 399, 0, 1}, {true, 200, 199, 2}, {true, 200, 200, 0}, {true, 0, 0, 1}, {true, 400, 0, 0}, {true, 0, 0, 1}, {false, 100, 0, 0}} {
		round(v.idle, v.acked, v.lost)
		require.Equal(t, v.quiet, a.hushed, "%+v", v)
	}
	for i := range 8 {
		require.Equal(t, 20*ms, a.BaseRTT(), "%d rounds", i)
		round(true, 100, 0)
	}
	require.Equal(t, 25*ms, a.BaseRTT())
}

// TestPaidBefore: what is sent as a round ends is paid for at the rate of before, also where another one ends at that moment.
func TestPaidBefore(t *testing.T) {
	a := adaptive(t)
	a.start(0)
	const end = 100 * ms
	for id := range int64(2) {
		a.round.begin(0, id, true)
		a.round.done, a.inflight, a.lastID, a.lastFeedback = true, 1000, 7, end
		a.pacer.credit = -1e4
		rate := a.Rate()
		a.settle(end)
		require.Greater(t, a.Rate(), rate)
		require.Equal(t, round{open: true, start: end, end: 7}, a.round, "what is in flight is of the next")
		a.OnSent(end, 8+id, 1000)
		require.Equal(t, 30_000.0, a.rates.of(8+id))
	}
	a.OnSent(end+1, 10, 1000)
	require.Equal(t, a.Rate(), a.rates.of(10))
}

// TestApart: bursts are as far apart as the peer's acks where these come less than ten times a second.
func TestApart(t *testing.T) {
	for _, v := range [][3]time.Duration{{16 * ms, 100 * ms, 16 * ms}, {16 * ms, 100*ms + 1, 100*ms + 1}, {200 * ms, 150 * ms, 200 * ms}, {200 * ms, 16 * ms, 200 * ms}} {
		a := adaptive(t)
		a.sendGap, a.ackGap = v[0], v[1]
		require.Equal(t, v[2], a.apart())
	}
}
