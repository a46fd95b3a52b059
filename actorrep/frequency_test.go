package actorrep_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

type plain struct {
	actorrep.Base
	N int32 `net:""`
}

type lazy struct {
	actorrep.Base
	N int32 `net:""`
}

type pushed struct {
	actorrep.Base
	N actorrep.Var[int32] `net:""`
}

// seconds steps a server's world for a time and returns how many actors it compared.
func seconds(w *actorrep.World, now *time.Duration, n float64, each func()) uint64 {
	before := w.Counters.Compared
	for range int(n * 50) {
		*now += time.Second / 50
		if each != nil {
			each()
		}
		w.Step(*now)
	}
	return w.Counters.Compared - before
}

func TestUpdateFrequency(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("plain", (*plain)(nil)))
	require.NoError(t, w.Register("lazy", (*lazy)(nil), actorrep.Manual()))
	require.NoError(t, w.Register("pushed", (*pushed)(nil)))
	var now time.Duration
	a := &plain{}
	require.NoError(t, w.Spawn(a))
	require.EqualValues(t, 50, seconds(w, &now, 1, nil), "every Step")
	require.NoError(t, a.SetUpdateFrequency(10))
	require.InDelta(t, 10, seconds(w, &now, 1, nil), 1)
	before := w.Counters.Compared
	a.ForceUpdate()
	seconds(w, &now, 0.02, nil)
	require.Equal(t, before+1, w.Counters.Compared, "at once")
	require.NoError(t, a.SetUpdateFrequency(0))
	require.EqualValues(t, 50, seconds(w, &now, 1, nil))
	require.NoError(t, w.Destroy(a))

	b, c := &lazy{}, &pushed{}
	require.NoError(t, w.Spawn(b))
	require.NoError(t, w.Spawn(c))
	require.EqualValues(t, 2, seconds(w, &now, 1, nil), "once when they came")
	b.N = 5
	require.Zero(t, seconds(w, &now, 1, nil))
	b.MarkDirty()
	c.N.Set(9)
	require.EqualValues(t, 2, seconds(w, &now, 1, nil))
	require.EqualValues(t, 50, seconds(w, &now, 1, func() { c.N.Set(c.N.Get() + 1) }))
	require.NoError(t, c.SetUpdateFrequency(5))
	require.InDelta(t, 5, seconds(w, &now, 1, func() { c.N.Set(c.N.Get() + 1) }), 1, "marks wait for their time")
	require.ErrorIs(t, (&plain{}).SetUpdateFrequency(1), actorrep.ErrNotSpawned)
}

// TestAdaptive: quiet actors are compared less and less, down to the lowest frequency, and lively ones more again.
func TestAdaptive(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("plain", (*plain)(nil), actorrep.UpdateFrequency(25), actorrep.Adaptive(2)))
	var now time.Duration
	a := &plain{N: 1}
	require.NoError(t, w.Spawn(a))
	require.InDelta(t, 50, seconds(w, &now, 2, nil), 3)
	require.Less(t, seconds(w, &now, 5, nil), uint64(60), "slower by and by")
	require.InDelta(t, 20, seconds(w, &now, 10, nil), 2, "twice a second")
	seconds(w, &now, 5, func() { a.N++ })
	lively := func() { a.N++ }
	require.Greater(t, seconds(w, &now, 1, lively), uint64(20), "fast again")
	for _, own := range []struct{ hz, compares float64 }{{10, 10}, {0, 50}, {1, 1}} { // instead of its class's
		require.NoError(t, a.SetUpdateFrequency(own.hz))
		seconds(w, &now, 2, lively)
		require.InDelta(t, own.compares, seconds(w, &now, 1, lively), 1, "at %v Hz", own.hz)
	}
	require.NoError(t, w.Destroy(a))
	a = &plain{}
	require.NoError(t, w.Spawn(a))
	require.InDelta(t, 50, seconds(w, &now, 2, nil), 3, "one that comes late begins as the first did")
	require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("x", (*lazy)(nil), actorrep.Adaptive(0)))
	require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("x", (*lazy)(nil), actorrep.UpdateFrequency(-1)))
	require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("x", (*lazy)(nil), actorrep.UpdateFrequency(0)))
	require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("x", (*lazy)(nil), actorrep.UpdateFrequency(math.NaN())))
	require.Error(t, actorrep.NewServer(actorrep.Config{}).Register("x", (*lazy)(nil), actorrep.Priority(0)))
}

// TestLateRegister: ends have told each other their classes.
func TestLateRegister(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{})
	w.join()
	require.ErrorIs(t, w.Server.Register("plain", (*plain)(nil)), actorrep.ErrLate)
}
