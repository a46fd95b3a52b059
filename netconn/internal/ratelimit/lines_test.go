package ratelimit

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLines: one line a second, with the number of those left out; a clock that goes back an hour doesn't silence the log for an hour.
func TestLines(t *testing.T) {
	var l Lines
	now := time.Unix(1_000_000, 0)
	var wrote atomic.Int64
	for range 3 {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 100 {
					if _, ok := l.Next(now); ok {
						wrote.Add(1)
					}
				}
			})
		}
		all.Wait()
		now = now.Add(time.Second)
	}
	require.EqualValues(t, 3, wrote.Load())
	others, ok := l.Next(now)
	require.True(t, ok)
	require.EqualValues(t, 799, others)
	_, ok = l.Next(now.Add(999 * time.Millisecond))
	require.False(t, ok)
	others, ok = l.Next(now.Add(-time.Hour))
	require.True(t, ok)
	require.EqualValues(t, 1, others)
	_, ok = l.Next(now.Add(-time.Hour))
	require.False(t, ok)
}
