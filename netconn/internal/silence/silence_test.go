package silence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDied: where packets are rare, three times the longest gap of the last 5 to 10 s are needed, and one that was longer before counts no more.
func TestDied(t *testing.T) {
	var g Gaps
	now := time.Duration(0)
	play := func(d, gap time.Duration) {
		for end := now + d; now < end; now += 10 * time.Millisecond {
			g.Note(now, now%gap)
		}
	}
	died := func() (least time.Duration) {
		for !g.Died(least, 300*time.Millisecond) {
			least += 10 * time.Millisecond
		}
		return least
	}
	require.Equal(t, 300*time.Millisecond, died())
	play(5*time.Second, 200*time.Millisecond)
	require.Equal(t, 570*time.Millisecond, died())
	play(11*time.Second, 20*time.Millisecond)
	require.Equal(t, 300*time.Millisecond, died())
}
