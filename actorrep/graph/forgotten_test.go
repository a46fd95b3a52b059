package graph

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// TestForgottenViewpoint: a game that gives no connection a viewpoint is told once why nobody sees what is in a grid: after 10 s, and not when nothing is in it,
// nor when one connection has had a viewpoint.
func TestForgottenViewpoint(t *testing.T) {
	const second = int(time.Second / tick)
	for _, c := range []struct {
		name          string
		things, looks bool
		told          int
	}{{"forgotten", true, false, 1}, {"empty", false, false, 0}, {"looks", true, true, 0}} {
		var failed []error
		r := newRig(t, &Graph{}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }})
		if c.things {
			require.NoError(t, r.w.Spawn(&thing{}))
		}
		require.NoError(t, r.w.Spawn(&idea{}))
		a := r.join(0)
		r.join(0)
		for i := range 30 * second {
			if c.looks && i == second {
				a.peer.SetViewpoint(1e6, 0, 0)
			}
			r.step()
			if i < 10*second {
				require.Empty(t, failed, c.name)
			}
		}
		require.Len(t, failed, c.told, c.name)
		for _, err := range failed {
			require.ErrorIs(t, err, ErrNoViewpoint)
		}
	}
}
