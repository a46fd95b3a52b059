package rewind_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

// TestHostileShots: shots of clients that lie, at times of the far past, the future and the ends of time, along lines that are infinite, nowhere or longer than numbers go, show nothing
// older than MaxRewind, hit only what a line meets, and cost a look at each hitbox at most.
func TestHostileShots(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	looks := 0
	cfg := config()
	boxes := cfg.Hitboxes
	cfg.Hitboxes = func(id rewind.ID, x *float64, dst []rewind.Capsule) []rewind.Capsule {
		looks++
		return boxes(id, x, dst)
	}
	h := newHistory(t, cfg)
	const things, max = 100, 250 * ms
	now := time.Duration(0)
	for range 60 {
		now += 16 * ms
		require.NoError(t, h.Begin(now))
		for id := range rewind.ID(things) {
			require.NoError(t, h.Add(id+1, float64(id)*10+now.Seconds()))
		}
	}
	times := []time.Duration{0, -1, math.MinInt64, math.MaxInt64, now, now + 1, now - max, now - max - 1, now - max + 1, now + time.Hour, -400 * 24 * time.Hour}
	numbers := []float64{0, 1, -1, 500, 1e9, -1e9, 1e154, -1e155, 1e300, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64}
	vec := func() (v rewind.Vec) {
		for i := range v {
			v[i] = numbers[rng.IntN(len(numbers))]
		}
		return v
	}
	far := func(v rewind.Vec) bool { return !(math.Abs(v[0])+math.Abs(v[1])+math.Abs(v[2]) < 1e100) }
	hits, clamped := 0, h.Counters.Clamped
	for range 5000 {
		at := times[rng.IntN(len(times))]
		shot := rewind.ViewTime(at, times[rng.IntN(len(times))], times[rng.IntN(len(times))]) // may overflow
		for _, view := range []time.Duration{at, shot} {
			looks = 0
			v := h.At(now, view)
			require.LessOrEqual(t, v.Time(), now)
			require.GreaterOrEqual(t, v.Time(), now-max)
			n := 0
			v.All(func(rewind.ID, float64) bool { n++; return true })
			require.Equal(t, things, n)
			from, to := vec(), vec()
			if hit, ok := v.Ray(from, to, rewind.NoID); ok {
				hits++
				require.True(t, hit.T >= 0 && hit.T <= 1)
				require.False(t, far(hit.At), "%v to %v hits at %v", from, to, hit.At)
				x, there := v.Pose(hit.ID)
				require.True(t, there)
				require.Less(t, math.Abs(hit.At[0]-x)+math.Abs(hit.At[1])+math.Abs(hit.At[2]), 4.)
			}
			for _, touch := range v.Overlap(rewind.Capsule{A: from, B: to, Radius: numbers[rng.IntN(len(numbers))]}, rewind.NoID, nil) {
				require.False(t, math.IsNaN(touch.Depth))
			}
			require.LessOrEqual(t, looks, things, "each once for both")
		}
	}
	require.Greater(t, hits, 10)
	require.Greater(t, h.Counters.Clamped-clamped, uint64(3000))
}
