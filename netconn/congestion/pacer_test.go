package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDebtIsBounded: a burst far beyond the credit doesn't silence a slow connection for a minute.
func TestDebtIsBounded(t *testing.T) {
	a, err := NewAdaptive(AdaptiveConfig{})
	require.NoError(t, err)
	now := time.Duration(0)
	for id := range int64(200) {
		a.OnSent(now, id, 1000)
	}
	for id := range int64(200) {
		now += 10 * time.Millisecond
		a.OnLost(now, id, 1000)
		a.Tick(now)
	}
	from := now
	for a.Budget(now) <= 0 {
		now += 10 * time.Millisecond
		a.Tick(now)
		require.Less(t, now-from, 2*time.Second, "at a rate of %v", a.Rate())
	}
}
