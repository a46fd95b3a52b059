package actorrep_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// rambler walks about in a grid.
type rambler struct {
	actorrep.Base
	Pos  struct{ X, Y, Z float64 } `net:"q=0.01"`
	Name string                    `net:""`
	Mine uint32                    `net:"owner"`
	Team uint16                    `net:"group=red"`
}

func (w *rambler) Location() (x, y, z float64) { return w.Pos.X, w.Pos.Y, w.Pos.Z }

// rucksack is a rambler's component.
type rucksack struct {
	actorrep.Base
	N    actorrep.Var[uint8] `net:""`
	Many [80]int32           `net:""`
}

var (
	ramblerHail = actorrep.MulticastRPC(func(actorrep.Call, *rambler, uint8) error { return nil })
	ramblerWave = actorrep.ServerRPC(func(c actorrep.Call, w *rambler, n uint8) error {
		w.Team += uint16(n)
		if n == 0 {
			return ramblerHail.Call(w, n)
		}
		return nil
	}, actorrep.AnyClient, actorrep.RateLimit(20, 5), actorrep.Reliable)
)

func registerRamblers(w *actorrep.World) error {
	if err := w.Register("rucksack", (*rucksack)(nil)); err != nil {
		return err
	}
	return w.Register("rambler", (*rambler)(nil), actorrep.RPCs{"Hail": ramblerHail, "Wave": ramblerWave}, actorrep.CullDistance(60))
}

// ramble plays a seed, and returns a sum of all that was sent, told and counted.
func ramble(t *testing.T, seed uint64, parallel actorrep.Executor) string {
	trace := fnv.New64a()
	note := func(format string, args ...any) { fmt.Fprintf(trace, format, args...) }
	g := &graph.Graph{Middle: 1 + int(seed%3), Far: 1 + int(seed%5)}
	r := rig.New(t, seed, netsim.Settings{Lag: 30 * time.Millisecond, Loss: float64(seed % 4 * 5)},
		actorrep.Config{Relevancy: g.Relevancy, Parallel: parallel, RelevantTimeout: 300 * time.Millisecond, Failed: func(err error) { note("failed %v\n", err) }}, registerRamblers)
	r.Server.CompareOnCoresFrom([]int{1, 100, 1000}[seed%3])
	if seed%2 == 1 {
		r.Speed = 16 << 10
	}
	r.Sent = func(p []byte) { note("sent %x\n", p) }
	r.Server.OnValues(func(a actorrep.Actor) { note("values %v\n", a.(interface{ ClassName() string }).ClassName()) })
	var all []*rambler
	place := func(w *rambler) { w.Pos.X, w.Pos.Y = r.Rand.Float64()*300, r.Rand.Float64()*300 }
	spawn := func() *rambler {
		w := &rambler{}
		place(w)
		require.NoError(t, r.Server.Spawn(w))
		if r.Rand.IntN(5) == 0 {
			require.NoError(t, r.Server.SpawnIn(w, &rucksack{}))
		}
		return w
	}
	for range 120 {
		all = append(all, spawn())
	}
	for range 4 {
		r.JoinOther(registerRamblers)
	}
	for range 45 {
		for i, w := range all {
			switch n := r.Rand.IntN(120); n {
			case 0:
				place(w)
			case 1:
				w.Pos.X = []float64{math.NaN(), math.Inf(1), 1e300, -1e300}[r.Rand.IntN(4)]
			case 2:
				require.NoError(t, w.SetDormant(!w.Dormant()))
			case 3, 4, 5:
				w.FlushDormancy()
			case 6:
				w.SetOwner(r.Lines[r.Rand.IntN(len(r.Lines))].Peer)
			case 7:
				require.NoError(t, r.Server.Destroy(w))
				all[i] = spawn()
			case 8:
				w.SetCullDistance(r.Rand.Float64() * 200)
			case 9:
				w.SetAlwaysRelevant(!w.AlwaysRelevant())
			case 10:
				w.SetOnlyOwner(!w.OnlyOwner())
			case 11:
				note("%v\n", ramblerHail.Call(w, uint8(n)))
			case 12:
				require.NoError(t, w.SetUpdateFrequency([]float64{0, 5, 15}[r.Rand.IntN(3)]))
			default:
				if n < 60 {
					w.Pos.Y += r.Rand.Float64()
				}
				if n < 30 {
					w.Mine++
					w.Team++
				}
				if n == 30 {
					w.Name = string(rune('a' + r.Rand.IntN(26)))
				}
				for c := range w.Children {
					c.(*rucksack).N.Set(uint8(n))
					c.(*rucksack).Many[n%80]++
				}
			}
		}
		for _, l := range r.Lines {
			l.Peer.SetViewpoint(r.Rand.Float64()*300, r.Rand.Float64()*300, 0)
			switch r.Rand.IntN(30) {
			case 0:
				_ = l.Peer.JoinGroup("red")
			case 1:
				l.Peer.LeaveGroup("red")
			case 2:
				l.Peer.SetViewTarget(all[r.Rand.IntN(len(all))])
			case 3:
				l.Peer.SetViewTarget(nil)
			case 4:
				note("%v\n", r.Server.Explain(l.Peer, all[0]).Text)
			case 5:
				r.Server.RemoveConn(l.Peer)
			case 6, 7, 8:
				for a := range l.World.All {
					if w, is := a.(*rambler); is {
						_ = ramblerWave.Call(w, uint8(r.Rand.IntN(256)))
					}
				}
			}
		}
		r.Step()
	}
	note("%+v\n", r.Server.Counters)
	return fmt.Sprintf("%x %+v", trace.Sum64(), r.Server.Counters)
}

// TestCoresWithAGraph: with a Graph, which says on several cores which actors stay in their cells, the bytes, what is told and what is counted are the same on any
// number of cores, whatever becomes of the actors and whatever the clients call.
func TestCoresWithAGraph(t *testing.T) {
	cores := []driver.Cores{2, 3, 8}
	for seed := range actorrep.SeedsOf(6) {
		one := ramble(t, seed, nil)
		for _, n := range cores {
			require.Equal(t, one, ramble(t, seed, n), "seed %d, %d cores", seed, n)
		}
	}
}
