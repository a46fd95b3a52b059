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

// TestDark: a darkness makes packets rare for half a second at most, and only where there was another one within 10 s before it ends. A gap after that counts as ever.
func TestDark(t *testing.T) {
	const ms = time.Millisecond
	var g Gaps
	now := time.Duration(0)
	light := func(d time.Duration) {
		for end := now + d; now < end; now += 10 * ms {
			g.Note(now, now%(20*ms))
		}
	}
	silent := func(d time.Duration, dark bool) {
		for end, began := now+d, now; now < end; now += 10 * ms {
			g.Note(now, now-began)
			if dark && now-began == 350*ms {
				g.Dark()
			}
		}
		g.Note(now, 0)
	}
	died := func() (least time.Duration) {
		for !g.Died(least, 300*ms) {
			least += 10 * ms
		}
		return least
	}
	light(6 * time.Second)
	silent(4*time.Second, true)
	require.Equal(t, 300*ms, died())
	light(3 * time.Second)
	silent(4*time.Second, true)
	require.Equal(t, 1500*ms, died())
	light(9600 * ms) // so that the next one ends 10 s later
	silent(400*ms, true)
	require.Equal(t, 300*ms, died())
	light(5 * time.Second)
	silent(400*ms, true)
	require.Equal(t, 1170*ms, died(), "of 390 ms")
	silent(time.Second, false)
	require.Equal(t, 2970*ms, died())
}
