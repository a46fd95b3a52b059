package fastarray_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Scores of the players, by name.
func ExampleMap() {
	type board struct {
		actorrep.Base
		Scores fastarray.Map[string, int32] `net:""`
	}
	var b board
	_ = b.Scores.Set("ann", 3)
	_ = b.Scores.Set("bob", 4)
	_ = b.Scores.Set("ann", 5)
	_ = b.Scores.Delete("bob")
	for name, score := range b.Scores.All {
		fmt.Println(name, score)
	}
	// Output:
	// ann 5
}

type team struct{ Color, Number uint8 }

// ledger is an actor with a map, which tells what it was told.
type ledger struct {
	actorrep.Base
	Gold fastarray.Map[team, slot] `net:"notify=OnGold"`

	told   map[team]slot
	errors []string
	golds  int
}

func (l *ledger) OnGold() { l.golds++ }

func (l *ledger) Spawned() {
	l.told = maps.Collect(l.Gold.All)
	bad := func(k team) { l.errors = append(l.errors, fmt.Sprint(k)) }
	l.Gold.OnAdd = func(k team, v slot) {
		if _, ok := l.told[k]; ok {
			bad(k)
		}
		l.told[k] = v
	}
	l.Gold.OnChange = func(k team, old, now slot) {
		if l.told[k] != old {
			bad(k)
		}
		l.told[k] = now
	}
	l.Gold.OnRemove = func(k team, old slot) {
		if l.told[k] != old {
			bad(k)
		}
		delete(l.told, k)
	}
}

func (*ledger) Destroyed() {}

// TestMaps: a map is the same at both ends under loss, looked up and told of by its keys.
func TestMaps(t *testing.T) {
	reg := func(w *actorrep.World) error { return w.Register("ledger", (*ledger)(nil)) }
	for _, loss := range []float64{0, 20} {
		r := rig.New(t, uint64(4+loss), netsim.Settings{Loss: loss}, actorrep.Config{}, reg)
		r.Join(reg)
		l := &ledger{}
		require.NoError(t, l.Gold.Set(team{1, 1}, slot{Name: "first"}))
		require.NoError(t, r.Server.Spawn(l))
		model := maps.Collect(l.Gold.All)
		agree := func() {
			r.Until(func(line *rig.Line) string {
				m, _ := line.World.Find(l.GUID()).(*ledger)
				if m == nil {
					return "not there"
				}
				if got := maps.Collect(m.Gold.All); !maps.Equal(got, model) {
					return fmt.Sprint(got, " instead of ", model)
				}
				return ""
			})
			r.Step() // its callbacks
			m := r.Lines[0].World.Find(l.GUID()).(*ledger)
			for c := range uint8(4) {
				for n := range uint8(4) {
					got, ok := m.Gold.Get(team{c, n})
					want, there := model[team{c, n}]
					require.Equal(t, there, ok)
					require.Equal(t, want, got)
				}
			}
			require.Equal(t, model, m.told)
			require.Empty(t, m.errors)
		}
		agree()
		for range 60 {
			for range r.Rand.IntN(6) {
				k, v := team{uint8(r.Rand.IntN(4)), uint8(r.Rand.IntN(4))}, slot{Name: fmt.Sprint(r.Rand.IntN(9)), Count: uint16(r.Rand.IntN(999))}
				switch r.Rand.IntN(8) {
				case 0, 1, 2:
					require.NoError(t, l.Gold.Delete(k))
					delete(model, k)
				case 3:
					if r.Rand.IntN(10) == 0 {
						require.NoError(t, l.Gold.Clear())
						clear(model)
					}
				default:
					require.NoError(t, l.Gold.Set(k, v))
					model[k] = v
				}
				if r.Rand.IntN(2) == 0 {
					r.Step()
				}
			}
			require.Equal(t, model, maps.Collect(l.Gold.All))
			require.Equal(t, len(model), l.Gold.Len())
			agree()
		}
		m := r.Lines[0].World.Find(l.GUID()).(*ledger)
		require.Positive(t, m.golds)
		require.ErrorIs(t, m.Gold.Set(team{1, 1}, slot{}), fastarray.ErrMirror)
		require.ErrorIs(t, m.Gold.Delete(team{3, 3}), fastarray.ErrMirror)
	}
}

// TestMapOfALiar: a server that sends a key twice gets no more than that.
func TestMapOfALiar(t *testing.T) {
	var from fastarray.List[struct {
		Key   uint8
		Value uint8
	}]
	for range 3 {
		_, err := from.Add(struct{ Key, Value uint8 }{7, uint8(from.Len())})
		require.NoError(t, err)
	}
	w := bitio.NewWriter(make([]byte, 100))
	from.NetWrite(w, 0)
	var m fastarray.Map[uint8, uint8]
	_, err := m.NetForm()
	require.NoError(t, err)
	require.NoError(t, m.NetRead(bitio.NewReader(w.Bytes(), w.Len())))
	v, ok := m.Get(7)
	require.True(t, ok)
	require.EqualValues(t, 2, v)
	require.Equal(t, 3, m.Len())
	_, ok = m.Get(8)
	require.False(t, ok)
}

// TestFullMap: a value for which there is no room leaves the map as it was.
func TestFullMap(t *testing.T) {
	var m fastarray.Map[uint32, uint64]
	n := uint32(0)
	for ; m.Set(n, 1<<60) == nil; n++ {
	}
	require.Equal(t, int(n), m.Len())
	require.ErrorIs(t, m.Set(n, 1<<60), fastarray.ErrFull)
	_, ok := m.Get(n)
	require.False(t, ok)
	require.NoError(t, m.Delete(0))
	require.NoError(t, m.Set(n, 1<<60))
}
