package rewind_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

// TestBounds: what is at a bound of the config is taken, what is beyond is ErrConfig.
func TestBounds(t *testing.T) {
	for _, change := range []func(c *rewind.Config[float64], beyond int){
		func(c *rewind.Config[float64], beyond int) { c.MaxRewind = 2*time.Second + time.Duration(beyond) },
		func(c *rewind.Config[float64], beyond int) { c.MaxRewind = 1 - 2*time.Duration(beyond) },
		func(c *rewind.Config[float64], beyond int) { c.Snapshots = 2 - beyond },
		func(c *rewind.Config[float64], beyond int) { c.Snapshots = 1024 + beyond },
		func(c *rewind.Config[float64], beyond int) { c.MaxEntities = 1 - 2*beyond },
		func(c *rewind.Config[float64], beyond int) { c.MaxEntities = 65536 + beyond },
	} {
		for beyond := range 2 {
			cfg := config()
			change(&cfg, beyond)
			_, err := rewind.New(cfg)
			if beyond == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, rewind.ErrConfig)
			}
		}
	}
}

// TestExactTouch: shapes that touch without overlapping touch, a ray through a point meets it, one that starts within is met at once, and of two things at one
// place it is the one with the lower id. A thing without hitboxes is met by nothing.
func TestExactTouch(t *testing.T) {
	cfg := config()
	cfg.Hitboxes = func(id rewind.ID, x *float64, dst []rewind.Capsule) []rewind.Capsule {
		switch id {
		case 1, 2:
			return append(dst, rewind.Sphere(rewind.Vec{*x}, 0))
		case 3:
			return append(dst, rewind.Sphere(rewind.Vec{*x}, 0.5))
		}
		return dst
	}
	h := newHistory(t, cfg)
	require.NoError(t, h.Begin(0))
	for id, x := range []float64{9, 0, 0, 10, 20} {
		require.NoError(t, h.Add(rewind.ID(id), x))
	}
	v := h.At(0, 0)
	hit, ok := v.Ray(rewind.Vec{-1}, rewind.Vec{1}, rewind.NoID)
	require.True(t, ok)
	require.Equal(t, rewind.Hit{ID: 1, T: 0.5}, hit)
	hit, ok = v.Ray(rewind.Vec{10.1}, rewind.Vec{12}, rewind.NoID)
	require.True(t, ok)
	require.Equal(t, rewind.Hit{ID: 3, At: rewind.Vec{10.1}}, hit)
	hit, ok = v.Ray(rewind.Vec{9.9}, rewind.Vec{12}, rewind.NoID)
	require.True(t, ok)
	require.Zero(t, hit.T)
	_, ok = v.Ray(rewind.Vec{20, -1}, rewind.Vec{20, 1}, rewind.NoID)
	require.False(t, ok)
	require.Equal(t, []rewind.Touch{{ID: 1}, {ID: 2}}, v.Overlap(rewind.Sphere(rewind.Vec{1}, 1), rewind.NoID, nil))
	require.Equal(t, []rewind.Touch{{ID: 3}}, v.Overlap(rewind.Sphere(rewind.Vec{12}, 1.5), rewind.NoID, nil))
	require.Equal(t, rewind.Counters{Snapshots: 1, Views: 1}, h.Counters)
}

// TestCounted: what was begun, looked at and refused for its number is counted.
func TestCounted(t *testing.T) {
	cfg := config()
	cfg.MaxEntities = 2
	h := newHistory(t, cfg)
	for i := range 3 {
		require.NoError(t, h.Begin(time.Duration(i)))
	}
	require.NoError(t, h.Add(1, 0))
	require.NoError(t, h.Add(2, 0))
	require.ErrorIs(t, h.Add(3, 0), rewind.ErrFull)
	h.At(2, 2)
	h.Show(2, func(add func(rewind.ID, float64) error) {
		require.NoError(t, add(4, 0))
		require.NoError(t, add(5, 0))
		require.ErrorIs(t, add(6, 0), rewind.ErrFull)
		require.ErrorIs(t, add(7, 0), rewind.ErrFull)
	})
	require.Equal(t, rewind.Counters{Snapshots: 3, Full: 3, Views: 2}, h.Counters)
}

// TestDoForgets: a Do moves back what it has moved, and not what one before it had.
func TestDoForgets(t *testing.T) {
	h := newHistory(t, config())
	for i := range rewind.ID(2) {
		require.NoError(t, h.Begin(time.Duration(i)))
		require.NoError(t, h.Add(1+i, 5))
	}
	g := game{0: 7, 1: 10, 2: 20}
	inside := func(id rewind.ID) func(*rewind.View[float64]) {
		return func(*rewind.View[float64]) { require.Equal(t, 5.0, g[id]) }
	}
	require.NoError(t, h.Do(0, 0, g, rewind.NoID, inside(1)))
	require.Equal(t, game{0: 7, 1: 10, 2: 20}, g)
	g[1] = 30
	require.NoError(t, h.Do(1, 1, g, rewind.NoID, inside(2)))
	require.Equal(t, game{0: 7, 1: 30, 2: 20}, g)
}
