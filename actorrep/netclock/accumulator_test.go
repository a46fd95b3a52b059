package netclock_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netclock"
)

// TestAccumulator: every tick comes once, in order, whatever the frames are; after a long frame the newest ones come and the others are counted.
func TestAccumulator(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 1))
	const interval = 16666 * time.Microsecond
	a, err := netclock.NewAccumulator(interval, 8)
	require.NoError(t, err)
	now := 400 * 24 * time.Hour
	var got []time.Duration
	for i := range 5000 {
		switch {
		case i%500 == 499:
			now += time.Second
		case i%100 == 99:
			now -= 5 * time.Millisecond // a clock that was set back
		default:
			now += time.Duration(rng.Int64N(int64(40 * time.Millisecond)))
		}
		n := a.Advance(now)
		for i := n; i > 0; i-- {
			at := a.At(i)
			require.Zero(t, at%interval)
			require.LessOrEqual(t, at, now)
			require.Greater(t, at, now-9*interval)
			got = append(got, at)
		}
		require.LessOrEqual(t, n, 8)
		require.GreaterOrEqual(t, a.Alpha(now), 0.0)
		require.LessOrEqual(t, a.Alpha(now), 1.0)
	}
	require.True(t, slices.IsSorted(got))
	span := uint64((got[len(got)-1] - 400*24*time.Hour) / interval)
	require.InDelta(t, span, uint64(len(got))+a.Skipped, 2)
	require.Greater(t, a.Skipped, uint64(9*50))
	require.Zero(t, a.Advance(now))
	for _, bad := range []struct {
		interval time.Duration
		most     int
	}{{0, 8}, {time.Hour, 8}, {interval, 0}, {interval, 5000}} {
		_, err := netclock.NewAccumulator(bad.interval, bad.most)
		require.ErrorIs(t, err, netclock.ErrConfig)
	}
}

// A game of 50 ticks a second, drawn in frames that are longer and shorter.
func ExampleNewAccumulator() {
	ticks, err := netclock.NewAccumulator(20*time.Millisecond, 10)
	if err != nil {
		panic(err)
	}
	x, before := 0.0, 0.0
	for _, now := range []time.Duration{0, 25 * time.Millisecond, 30 * time.Millisecond, 90 * time.Millisecond} {
		for n := ticks.Advance(now); n > 0; n-- {
			before = x
			x++ // the game's step
		}
		fmt.Printf("%v: %.2f\n", now, before+(x-before)*ticks.Alpha(now))
	}
	// Output:
	// 0s: 0.00
	// 25ms: 0.25
	// 30ms: 0.50
	// 90ms: 3.50
}
