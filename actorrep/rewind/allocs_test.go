package rewind_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

func TestAllocs(t *testing.T) {
	h := newHistory(t, config())
	g := game{}
	for id := rewind.ID(1); id <= 50; id++ {
		g[id] = 1
	}
	now, touches, calls := time.Duration(0), make([]rewind.Touch, 0, 200), 0
	f := func(*rewind.View[float64]) { calls++ }
	tick := func() {
		now += 16 * ms
		if err := h.Begin(now); err != nil {
			t.Fatal(err)
		}
		for id := rewind.ID(1); id <= 50; id++ {
			if err := h.Add(id, float64(id)); err != nil {
				t.Fatal(err)
			}
		}
		v := h.At(now, now-100*ms)
		v.Ray(rewind.Vec{}, rewind.Vec{60, 0, 0}, 3)
		touches = v.Overlap(rewind.Sphere(rewind.Vec{5}, 10), 3, touches[:0])
		if err := h.Do(now, now-50*ms, g, 3, f); err != nil {
			t.Fatal(err)
		}
	}
	for range 40 {
		tick()
	}
	require.Zero(t, testing.AllocsPerRun(200, tick))
	require.NotEmpty(t, touches)
}

// A ray through 64 players of two hitboxes each, 100 ms ago.
func BenchmarkRay(b *testing.B) {
	h := newHistory(b, config())
	for now := time.Duration(0); now <= time.Second; now += 16 * ms {
		require.NoError(b, h.Begin(now))
		for id := rewind.ID(1); id <= 64; id++ {
			require.NoError(b, h.Add(id, float64(3*id)+now.Seconds()))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := h.At(time.Second, 900*ms).Ray(rewind.Vec{101.4, -10, 0}, rewind.Vec{101.4, 10, 0}, 3); ok {
			b.Fatal("hit")
		}
	}
}
