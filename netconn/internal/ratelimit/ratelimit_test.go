package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClockSetBack: a clock that is set back neither fills a bucket nor empties it, and it fills on from there.
func TestClockSetBack(t *testing.T) {
	b, now := newBucket(1, 2), time.Unix(1000, 0)
	require.True(t, b.take(now))
	now = now.Add(-time.Hour)
	require.True(t, b.take(now))
	require.False(t, b.take(now))
	now = now.Add(10 * time.Second)
	require.True(t, b.take(now), "ten seconds have passed since")
}
