package actorrep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestUsedWorld: a client that dials again with the World of an earlier connection is told so for each further one.
func TestUsedWorld(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, actorrep.Config{}, func(*actorrep.World) error { return nil })
	l := r.JoinOther(func(*actorrep.World) error { return nil })
	for n := range 3 {
		for range 30 {
			r.Step()
		}
		require.Len(t, l.Failed, n)
		for _, err := range l.Failed {
			require.ErrorIs(t, err, actorrep.ErrUsedWorld)
		}
		r.JoinAgain(l)
	}
}
