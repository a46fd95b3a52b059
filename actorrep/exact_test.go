package actorrep_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/graph"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// medley has fields of each kind that is predicted, one that takes several packets, and one for each audience. All of them follow from a number.
type medley struct {
	actorrep.Base
	X    float64    `net:"initial"`
	Line [3]float64 `net:"q=0.25"`
	Turn [2]float32 `net:"rot=16"`
	Leap [2]float64 `net:"q=1"`
	Fall float64    `net:"q=0.125"`
	Load []byte     `net:"cap=6000"`
	Mine [3]float32 `net:"q=0.5,owner"`
	Rest [2]float32 `net:"q=0.5,skipowner"`
	Some [4]float64 `net:"q=0.25,custom"`
	Team [2]float64 `net:"q=0.25,group=red"`
	Many [60]uint16 `net:"max=60000"`
}

func (m *medley) Location() (x, y, z float64) { return m.X, 0, 0 }

// set gives it the values of a number. Each is exact as it is sent.
func (m *medley) set(n uint32) {
	v := float64(n)
	leap := float64(n * 2654435761 >> 8)
	m.Line = [3]float64{v / 4, -v / 2, v * 3}
	m.Turn = [2]float32{float32(n*700%65536) * 45 / 8192, float32(n*3%65536) * 45 / 8192}
	m.Leap = [2]float64{leap, -leap}
	m.Fall = v * v / 8
	m.Load = bytes.Repeat([]byte{byte(n)}, 1+int(leap)%(1+int(n%4)*1900))
	m.Mine = [3]float32{float32(n), float32(n) / 2, -float32(n)}
	m.Rest = [2]float32{float32(n * n), float32(n)}
	m.Some = [4]float64{v, leap, -v, v / 4}
	m.Team = [2]float64{v * 9, v * v}
	for i := range m.Many {
		m.Many[i] = uint16(n)
	}
}

// medleyOther is a medley at another build of the game.
type medleyOther struct {
	actorrep.Base
	Some [4]float64 `net:"q=1,custom"`
	New  uint8      `net:""`
	Many [60]uint32 `net:"max=60000"`
	Fall float64    `net:"q=2"`
	Load []byte     `net:"cap=6000"`
	Rest [2]float64 `net:"q=8"`
	Line [3]float64 `net:"q=0.01"`
}

// valueKey is a field's value as a key of a map. Builds whose types differ have the same text.
func valueKey(v reflect.Value, sameBuild bool) any {
	switch {
	case v.Kind() == reflect.Slice:
		return string(v.Bytes())
	case sameBuild:
		return v.Interface()
	}
	return fmt.Sprint(v)
}

// TestValuesThatWereSet: whatever is lost or overtaken, and whoever may have a value, a field of an actor always is as the server once had it, and never
// becomes an older one; also at another build of the game.
func TestValuesThatWereSet(t *testing.T) {
	const steps = 160
	when := map[string]map[any][]int{} // by a field and its value: the numbers that give it that value, ascending
	for n := range steps {
		m := &medley{}
		if n > 0 {
			m.set(uint32(n))
		}
		v := reflect.ValueOf(m).Elem()
		for i := 1; i < v.NumField(); i++ {
			name, f := v.Type().Field(i).Name, v.Field(i)
			if when[name] == nil {
				when[name] = map[any][]int{}
			}
			for _, same := range []bool{true, false} {
				key := valueKey(f, same)
				when[name][key] = append(when[name][key], n)
			}
		}
	}
	newest := func(now int, name string, v reflect.Value, same bool) int {
		all := when[name][valueKey(v, same)]
		for i := len(all) - 1; i >= 0; i-- {
			if all[i] <= now {
				return all[i]
			}
		}
		return -1
	}
	seeds := uint64(6)
	if !testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		set := []netsim.Settings{{Loss: 20, LagMin: 10 * time.Millisecond, LagMax: 90 * time.Millisecond}, {LagMax: 300 * time.Millisecond, Loss: 3},
			{Lag: 250 * time.Millisecond, Loss: 8}, {Loss: 5, Lag: 50 * time.Millisecond, Dup: 10}, {BurstLoss: 3, BurstLength: 8, Lag: 20 * time.Millisecond}}[seed%5]
		w := newWorld(t, seed, set, actorrep.Config{Relevancy: (&graph.Graph{}).Relevancy, RelevantTimeout: -1}, func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("medley", (*medley)(nil), actorrep.CullDistance(500)))
		})
		rng := w.Rand
		w.Speed = []int{1 << 24, 1 << 17}[seed%2]
		w.Server.SetFrame([]uint32{0, 1<<16 - 50, 1<<32 - 60}[seed%3])
		w.join()
		w.join()
		w.JoinOther(func(w *actorrep.World) error { return w.Register("medley", (*medleyOther)(nil)) })
		for _, l := range w.Lines {
			l.Peer.SetViewpoint(200, 0, 0)
		}
		var all []*medley
		for range 6 {
			m := &medley{X: 1000 * rng.Float64()}
			m.set(1)
			require.NoError(t, w.Server.Spawn(m))
			all = append(all, m)
		}
		seen := map[actorrep.Actor]map[string]int{}
		pause := 0
		for now := 2; now < steps; now++ {
			m, l := all[rng.IntN(len(all))], w.Lines[rng.IntN(len(w.Lines))]
			switch rng.IntN(24) {
			case 0, 1:
				m.SetOwner(l.Peer)
			case 2:
				m.SetOwner(nil)
			case 3:
				require.NoError(t, m.SetCondition("Some", rng.IntN(2) == 0))
			case 4:
				require.NoError(t, l.Peer.JoinGroup("red"))
			case 5:
				l.Peer.LeaveGroup("red")
			case 6:
				require.NoError(t, m.SetDormant(!m.Dormant()))
			case 7:
				l.Peer.SetViewpoint(1000*rng.Float64(), 0, 0)
			case 8:
				l.Peer.SetUpdateEvery(m, 1+rng.IntN(4))
			case 9:
				pause = rng.IntN(20)
			}
			if pause--; pause < 0 {
				for _, m := range all {
					m.set(uint32(now))
				}
			}
			w.Step()
			for _, l := range w.Lines {
				for a := range l.World.All {
					if seen[a] == nil {
						seen[a] = map[string]int{}
					}
					_, same := a.(*medley)
					v := reflect.ValueOf(a).Elem()
					for i := range v.NumField() {
						name := v.Type().Field(i).Name
						if slices.Contains([]string{"Base", "X", "New"}, name) {
							continue
						}
						n := newest(now, name, v.Field(i), same)
						require.GreaterOrEqual(t, n, seen[a][name], "step %d: %v of %T is %v, which it wasn't, or was long ago", now, name, a, v.Field(i))
						seen[a][name] = n
					}
				}
			}
		}
		for _, l := range w.Lines {
			require.Empty(t, l.Failed)
		}
	}
}
