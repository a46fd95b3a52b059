package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDebtIsBounded: a burst far beyond the credit doesn't silence a slow connection for a minute, whatever its controller.
func TestDebtIsBounded(t *testing.T) {
	a, err := NewAdaptive(AdaptiveConfig{})
	require.NoError(t, err)
	for _, c := range []Controller{a, NewTokenBucket(20_000), NewGoodBad(1000)} {
		now := time.Duration(0)
		for id := range int64(200) {
			c.OnSent(now, id, 1000)
		}
		for id := range int64(200) {
			now += time.Millisecond
			c.OnLost(now, id, 1000)
			c.Tick(now)
		}
		if at, ok := c.NextDeadline(now); ok {
			require.Less(t, at-now, 2*time.Second)
		}
		from := now
		for c.Budget(now) <= 0 {
			now += 10 * time.Millisecond
			c.Tick(now)
			require.Less(t, now-from, 2*time.Second, "%T at a rate of %v", c, c.Rate())
		}
	}
}

// TestLargePacketsArePaidFor: packets that take more than a second of the rate keep to it, also with a small one behind each.
func TestLargePacketsArePaidFor(t *testing.T) {
	b := NewTokenBucket(MinNetSpeed)
	sent := 0
	for now := time.Duration(0); now < time.Minute; now += time.Second / 60 {
		b.Tick(now)
		if b.Budget(now) > 0 {
			b.OnSent(now, int64(2*sent), 8192)
			b.OnSent(now, int64(2*sent+1), 1)
			sent++
		}
	}
	require.InDelta(t, 60*MinNetSpeed/8192, sent, 2)
}

// TestUnusedCredit: an application is the limit where it leaves more than a tenth of its credit unused. What it has left amid a tick is what it had left before that.
func TestUnusedCredit(t *testing.T) {
	for over, limited := range map[float64]bool{0: false, 10: false, 10.1: true, 100: true, 1000: true} {
		var p pacer
		p.accrue(10*ms, 10_000, 1000)
		p.credit = 900 + over
		require.Equal(t, 900+over, p.left(11*ms))
		require.Equal(t, 0.0, p.left(10*ms))
		p.accrue(20*ms, 10_000, 1000)
		require.Equal(t, min(1000+over, 1000), p.credit)
		require.Equal(t, 900+over, p.left(20*ms))
		require.Equal(t, 200.0, p.accrued)
		p.accrued = 100
		require.Equal(t, limited, p.limited(), "%v of 100", over)
		require.False(t, p.limited(), "and anew")
	}
}
