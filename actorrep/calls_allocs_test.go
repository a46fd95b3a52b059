package actorrep_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// aimed is parameters without pointers.
type aimed struct {
	X, Y float32 `net:"q=0.1"`
	At   [2]int32
	Hit  bool
}

// drone counts what is called on it and sums up what it was called with.
type drone struct {
	actorrep.Base
	Pos vec `net:"q=0.01"`

	took [6]int
	sum  int32
}

func (d *drone) take(kind int, a aimed) error {
	d.took[kind]++
	d.sum += a.At[0]
	return nil
}

func droneCall(kind int) func(actorrep.Call, *drone, aimed) error {
	return func(_ actorrep.Call, d *drone, a aimed) error { return d.take(kind, a) }
}

var droneCalls = [6]*actorrep.RPC[*drone, aimed]{
	actorrep.ServerRPC(droneCall(0), actorrep.Reliable),
	actorrep.ServerRPC(droneCall(1)).Validated(func(_ actorrep.Call, _ *drone, a aimed) bool { return a.X >= 0 }),
	actorrep.ClientRPC(droneCall(2), actorrep.Reliable),
	actorrep.ClientRPC(droneCall(3)),
	actorrep.MulticastRPC(droneCall(4), actorrep.Reliable),
	actorrep.MulticastRPC(droneCall(5)),
}

func registerDrone(t testing.TB, w *actorrep.World) {
	list := actorrep.RPCs{}
	for i, name := range []string{"Server", "ServerOnce", "Client", "ClientOnce", "All", "AllOnce"} {
		list[name] = droneCalls[i]
	}
	require.NoError(t, w.Register("drone", (*drone)(nil), list))
}

// drones is a drone for each of two clients, as the server and as its owner has it.
func drones(t *testing.T) (w *world, here, there []*drone) {
	w = newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, registerDrone)
	for range 2 {
		d := &drone{}
		d.SetOwner(w.join().Peer)
		require.NoError(t, w.Server.Spawn(d))
		here = append(here, d)
	}
	for range 100 {
		w.Step()
	}
	for i, l := range w.Lines {
		d, _ := l.World.Find(here[i].GUID()).(*drone)
		require.NotNil(t, d)
		there = append(there, d)
	}
	return w, here, there
}

// TestAllocsCalls: calls of all kinds allocate nothing, at neither end.
func TestAllocsCalls(t *testing.T) {
	for kind, name := range []string{"server reliable", "server", "client reliable", "client", "multicast reliable", "multicast"} {
		t.Run(name, func(t *testing.T) {
			w, here, there := drones(t)
			callers := here
			if kind < 2 {
				callers = there
			}
			calls, failed := 0, error(nil)
			step := func() {
				for i, d := range callers {
					here[i].Pos.X++
					for range 2 {
						calls++
						if err := droneCalls[kind].Call(d, aimed{X: 1, Y: 2, At: [2]int32{int32(calls), 4}, Hit: true}); err != nil {
							failed = err
						}
					}
				}
				w.Rig.Step()
			}
			for range 300 {
				step()
			}
			require.Zero(t, testing.AllocsPerRun(50, func() {
				for range 10 {
					step()
				}
			}))
			for range 10 {
				w.Step()
			}
			require.NoError(t, failed)
			want, took, sum := int32(calls)*int32(calls+1)/2, 0, int32(0)
			for i := range here {
				for _, d := range [][]*drone{here, there} {
					took, sum = took+d[i].took[kind], sum+d[i].sum
				}
			}
			if kind >= 4 { // the server and the owner; the other client isn't counted
				calls, want = 2*calls, 2*want
			}
			require.Equal(t, calls, took)
			require.Equal(t, want, sum)
		})
	}
}

// TestAllocsSteady: a connection to which about as much goes in every Step gives back no memory that it needs again.
// The runtime allocates for itself now and then, so it has three tries: each is the same.
func TestAllocsSteady(t *testing.T) {
	allocs := steadyAllocs(t)
	for try := 1; allocs > 0 && try < 3; try++ {
		t.Logf("%d allocations", allocs)
		allocs = min(allocs, steadyAllocs(t))
	}
	require.Zero(t, allocs)
}

// steadyAllocs is the allocations of 1200 Steps.
func steadyAllocs(t *testing.T) (allocs uint64) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, registerHeroes)
	w.join()
	var heroes []*hero
	for range 40 {
		h := &hero{}
		require.NoError(t, w.Server.Spawn(h))
		heroes = append(heroes, h)
	}
	var before, after runtime.MemStats
	for step := range 2600 {
		moving := 1 + step%7
		if step < 100 { // as many as there may be in flight, and often enough for snapshots
			moving = len(heroes)
		}
		for i := range moving {
			heroes[(step+i)%len(heroes)].Pos.X++
		}
		if step == 1400 {
			allocs = 0
		}
		runtime.ReadMemStats(&before)
		w.Server.Step(w.Now + rig.Tick)
		runtime.ReadMemStats(&after)
		allocs += after.Mallocs - before.Mallocs
		w.Rig.Step()
	}
	return allocs
}
