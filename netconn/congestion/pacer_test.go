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
