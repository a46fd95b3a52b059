package actorrep_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type coach struct {
	actorrep.Base
	N uint32 `net:""`
}

type truck struct {
	actorrep.Base
	Load string `net:""`
	N    uint32 `net:""`
}

// TestCallsOfFormerActor: an actor that gets the id of one that was destroyed a moment ago, as after a checkpoint, opens behind it. The reliable calls of both run, in order and
// with their values, whatever is lost, also after darkness and with another class; those of one that goes before it could open are told.
func TestCallsOfFormerActor(t *testing.T) {
	for seed := range uint64(20) {
		var heard []string
		told := 0
		hear := func(c actorrep.Call, what string, n, value uint32) error {
			if !c.World.IsServer() {
				heard = append(heard, fmt.Sprint(what, n))
				require.GreaterOrEqual(t, value, n)
			}
			return nil
		}
		ride := actorrep.MulticastRPC(func(c actorrep.Call, a *coach, n uint32) error { return hear(c, "coach", n, a.N) }, actorrep.Reliable)
		haul := actorrep.MulticastRPC(func(c actorrep.Call, a *truck, n uint32) error { return hear(c, "truck", n, a.N) }, actorrep.Reliable)
		w := newWorld(t, seed, netsim.Settings{Loss: 20}, actorrep.Config{Failed: func(err error) {
			require.ErrorIs(t, err, actorrep.ErrActorGone)
			told++
		}}, func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("coach", (*coach)(nil), actorrep.RPCs{"Ride": ride}))
			require.NoError(t, w.Register("truck", (*truck)(nil), actorrep.RPCs{"Haul": haul}))
		})
		l := w.join()
		w.Await("the classes", w.Step, l.Peer.Ready)
		var want []string
		var id netguid.GUID
		again := func(a actorrep.Actor) {
			if id == 0 {
				require.NoError(t, w.Server.Spawn(a))
				return
			}
			require.NoError(t, w.Server.SpawnAs(a, nil, id))
		}
		for n := uint32(1); n <= 20; n += 2 {
			if n == 11 {
				require.NoError(t, l.Down.Set(netsim.Settings{Loss: 100}))
			}
			a := &coach{}
			again(a)
			id = a.GUID()
			w.Step()
			a.N = n
			require.NoError(t, ride.Call(a, n))
			for range 1 + n%8 {
				w.Step()
			}
			require.NoError(t, w.Server.Destroy(a))
			b := &truck{Load: "coal"}
			again(b)
			w.Step()
			b.N = n + 1
			require.NoError(t, haul.Call(b, n+1))
			want = append(want, fmt.Sprint("coach", n), fmt.Sprint("truck", n+1))
			if w.Step(); n < 19 {
				require.NoError(t, w.Server.Destroy(b))
			}
		}
		for range 30 {
			w.Step()
		}
		require.NoError(t, l.Down.Set(netsim.Settings{Loss: 20}))
		w.Await("the last", w.Step, func() bool { return len(heard) > 0 && heard[len(heard)-1] == want[len(want)-1] })
		require.Len(t, heard, len(want)-told, "seed %d: of %v", seed, want)
		require.Equal(t, heard, slices.DeleteFunc(want, func(s string) bool { return !slices.Contains(heard, s) }), "seed %d", seed)
		require.Greater(t, len(heard), 3)
		last, is := l.World.Find(id).(*truck)
		require.True(t, is)
		require.EqualValues(t, 20, last.N)
	}
}
