package interp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// spark comes and goes.
type spark struct {
	actorrep.Base
	X float64 `net:"" interp:""`
}

// TestForgottenTick: a world whose game never calls Tick doesn't keep the past of all actors that ever were.
func TestForgottenTick(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Spark", (*spark)(nil)))
	in, err := New(w, Config{})
	require.NoError(t, err)
	_, err = Register(in, ClassConfig[*spark]{})
	require.NoError(t, err)
	for i := range 2000 {
		a := &spark{X: 1}
		require.NoError(t, w.Spawn(a))
		w.Step(time.Duration(i) * time.Millisecond)
		require.NoError(t, w.Destroy(a))
		require.LessOrEqual(t, len(in.list), 2*sweepAt)
		require.Len(t, in.tracks, len(in.list))
	}
}
