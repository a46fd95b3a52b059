package interp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
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

// TestForgottenTickIsTold: a game that shows or rewinds actors without ever calling Tick is told so, once at each end; one that does neither, or
// calls Tick, isn't told anything.
func TestForgottenTickIsTold(t *testing.T) {
	for _, ticks := range []bool{false, true} {
		for _, shows := range []bool{false, true} {
			var in [2]*Interpolator
			var class [2]*Class[*spark]
			register := func(i int) func(w *actorrep.World) error {
				return func(w *actorrep.World) (err error) {
					require.NoError(t, w.Register("Spark", (*spark)(nil)))
					in[i], err = New(w, Config{})
					require.NoError(t, err)
					class[i], err = Register(in[i], ClassConfig[*spark]{})
					return err
				}
			}
			var failed []error
			r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, register(0))
			l := r.JoinOther(register(1))
			s := &spark{}
			require.NoError(t, r.Server.Spawn(s))
			for range 200 {
				s.X++
				r.Step()
				if ticks {
					in[0].Tick(r.Now)
					in[1].Tick(r.Now)
				}
				for a := range l.World.All {
					if shows {
						class[1].At(a.(*spark), &spark{})
						in[0].Rewind(l.Peer, Seen{Reach: 1})
					}
				}
			}
			if ticks || !shows {
				require.Empty(t, failed)
				require.Empty(t, l.Failed)
				continue
			}
			require.Equal(t, []error{errNoTick}, failed)
			require.Equal(t, []error{errNoTick}, l.Failed)
			require.ErrorIs(t, errNoTick, ErrConfig)
		}
	}
}

// TestNobodyYet: a game's own actor is nil until it has appeared, and nothing is drawn of it.
func TestNobodyYet(t *testing.T) {
	w := actorrep.NewClient(actorrep.Config{})
	require.NoError(t, w.Register("Spark", (*spark)(nil)))
	in, err := New(w, Config{})
	require.NoError(t, err)
	c, err := Register(in, ClassConfig[*spark]{})
	require.NoError(t, err)
	seen := spark{X: 7}
	require.False(t, c.At(nil, &seen))
	require.EqualValues(t, 7, seen.X)
	_, ok := c.Time(nil)
	require.False(t, ok)
}
