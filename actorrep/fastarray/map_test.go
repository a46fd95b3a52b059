package fastarray_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

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
		bare := &ledger{} // in whose map nothing ever is
		require.NoError(t, errors.Join(r.Server.Spawn(l), r.Server.Spawn(bare)))
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
		require.ErrorIs(t, r.Lines[0].World.Find(bare.GUID()).(*ledger).Gold.Set(team{1, 1}, slot{}), fastarray.ErrMirror)
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

// TestMapOfABrokenUpdate: an update that breaks off leaves what came before, and keys are looked up in that; also in one that says it is no newer.
func TestMapOfABrokenUpdate(t *testing.T) {
	var m fastarray.Map[uint8, uint8]
	from := &fastarray.Map[uint8, uint8]{}
	for k := range uint8(3) {
		require.NoError(t, from.Set(k, k))
	}
	read := func(base uint32, cut int) error {
		w := bitio.NewWriter(make([]byte, 100))
		from.NetWrite(w, base)
		return m.NetRead(bitio.NewReader(w.Bytes(), w.Len()-cut))
	}
	same := func() {
		t.Helper()
		for k := range uint8(6) {
			v, ok := m.Get(k)
			want, there := maps.Collect(m.All)[k]
			require.Equal(t, there, ok, "key %d", k)
			require.Equal(t, want, v)
		}
	}
	require.NoError(t, read(0, 0))
	same()
	base := from.NetKey()
	require.NoError(t, from.Delete(1))
	require.NoError(t, from.Set(1, 7))
	require.NoError(t, from.Set(5, 8))
	require.Error(t, read(base, 1))
	require.Equal(t, map[uint8]uint8{0: 0, 1: 7, 2: 2}, maps.Collect(m.All))
	same()
	require.NoError(t, read(0, 0))
	same()
	for range 4 { // the versions of another map
		require.NoError(t, from.Clear())
		require.NoError(t, from.Set(4, 1))
	}
	other := &fastarray.Map[uint8, uint8]{}
	for from.NetKey() > other.NetKey() {
		require.NoError(t, other.Set(2, uint8(other.NetKey())))
	}
	require.NoError(t, read(0, 0))
	same()
	from = other
	require.NoError(t, read(0, 0))
	require.Equal(t, 1, m.Len())
	same()
}

// TestKeysComeAsTheyAre: a key that would be another one at the client, where two could become one, is refused, and the map stays as it was.
func TestKeysComeAsTheyAre(t *testing.T) {
	keysCome(t, []float64{0, 1e300, math.Inf(1)}, math.NaN())
	type rough struct {
		X float64 `net:"q=0.5"`
	}
	keysCome(t, []rough{{0}, {1.5}, {2}}, rough{0.1}, rough{2.25})
	type hidden struct{ N, secret uint8 }
	keysCome(t, []hidden{{1, 0}, {1, 1}, {2, 0}})
	type pointing struct{ At *team }
	keysCome(t, []pointing{{}}, pointing{&team{}})
	at := time.Unix(1, 2)
	keysCome(t, []time.Time{at.UTC()}, at.In(time.FixedZone("east", 3600)))
}

func keysCome[K comparable](t *testing.T, good []K, bad ...K) {
	var m fastarray.Map[K, []string]
	want := map[K][]string{}
	for i, k := range good {
		want[k] = []string{fmt.Sprint(i)}
		require.NoError(t, m.Set(k, want[k]), "%v", k)
	}
	key := m.NetKey()
	for _, k := range bad {
		require.ErrorIs(t, m.Set(k, nil), fastarray.ErrUnfit, "%v", k)
		require.NoError(t, m.Delete(k), "%v", k)
	}
	require.Equal(t, key, m.NetKey())
	require.Equal(t, want, maps.Collect(m.All))
	w := bitio.NewWriter(make([]byte, 1000))
	m.NetWrite(w, 0)
	var got fastarray.Map[K, []string]
	require.NoError(t, got.NetRead(bitio.NewReader(w.Bytes(), w.Len())))
	for k, v := range want {
		has, ok := got.Get(k)
		require.True(t, ok, "%v", k)
		require.Equal(t, v, has)
	}
}

// TestMapWhileRanging: a loop over a map yields each key that stays, and none that went, though keys are set and deleted meanwhile, as in a loop over Go's own maps.
func TestMapWhileRanging(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var m fastarray.Map[uint8, uint32]
		model := map[uint8]uint32{}
		for k := range uint8(30) {
			require.NoError(t, m.Set(k, 0))
			model[k] = 0
		}
		stays, seen, n := maps.Clone(model), map[uint8]int{}, uint32(0)
		for k, v := range m.All {
			require.Equal(t, model[k], v, "seed %d", seed)
			require.Contains(t, model, k, "seed %d", seed)
			seen[k]++
			for range rng.IntN(5) {
				n++
				k := uint8(rng.IntN(40))
				if rng.IntN(2) == 0 && n < 300 {
					require.NoError(t, m.Set(k, n))
					model[k] = n
				} else {
					require.NoError(t, m.Delete(k))
					delete(model, k)
					delete(stays, k)
				}
			}
			if rng.IntN(200) == 0 {
				require.NoError(t, m.Clear())
				clear(model)
				clear(stays)
			}
		}
		require.Equal(t, model, maps.Collect(m.All))
		for k := range stays {
			require.Equal(t, 1, seen[k], "seed %d: key %d", seed, k)
		}
	}
}

// TestMapLosesUpdates: of a map whose keys come and go, updates from any version that the client is known to have lead to the server's map, whichever of the others were lost
// and in whatever order they come; and the callbacks say what changed.
func TestMapLosesUpdates(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var s, c fastarray.Map[uint8, uint32]
		model, told := map[uint8]uint32{}, map[uint8]uint32{}
		c.OnAdd = func(k uint8, v uint32) {
			require.NotContains(t, told, k, "seed %d", seed)
			told[k] = v
		}
		c.OnChange = func(k uint8, old, now uint32) {
			require.Equal(t, told[k], old, "seed %d", seed)
			told[k] = now
		}
		c.OnRemove = func(k uint8, old uint32) {
			require.Equal(t, told[k], old, "seed %d", seed)
			delete(told, k)
		}
		acked := uint32(0)
		type update struct {
			version uint32
			data    []byte
			bits    int
			model   map[uint8]uint32
		}
		var flying []update
		for step := range 400 {
			for range rng.IntN(4) {
				k, v := uint8(rng.IntN(6)), rng.Uint32N(1000)
				switch rng.IntN(9) {
				case 0, 1, 2:
					require.NoError(t, s.Delete(k))
					delete(model, k)
				case 3:
					if rng.IntN(6) == 0 {
						require.NoError(t, s.Clear())
						clear(model)
					}
				case 4: // more removals than are remembered
					for i := 0; rng.IntN(8) == 0 && i < 150; i++ {
						require.NoError(t, s.Set(k, v+uint32(i)))
						require.NoError(t, s.Delete(k))
						delete(model, k)
					}
				default:
					require.NoError(t, s.Set(k, v))
					model[k] = v
				}
			}
			w := bitio.NewWriter(make([]byte, 4000))
			s.NetWrite(w, acked)
			require.NoError(t, w.Err())
			flying = append(flying, update{s.NetKey(), w.Bytes(), w.Len(), maps.Clone(model)})
			if rng.IntN(3) == 0 {
				continue
			}
			i := rng.IntN(len(flying))
			if rng.IntN(2) == 0 || step == 399 {
				i = len(flying) - 1
			}
			u := flying[i]
			flying = flying[i+1:] // those behind it are dropped, as an actor's records are
			require.NoError(t, c.NetRead(bitio.NewReader(u.data, u.bits)))
			require.Equal(t, u.model, maps.Collect(c.All), "seed %d, step %d", seed, step)
			for k := range uint8(7) {
				v, ok := c.Get(k)
				want, there := u.model[k]
				require.Equal(t, there, ok, "seed %d, step %d", seed, step)
				require.Equal(t, want, v)
			}
			if rng.IntN(3) > 0 {
				acked = u.version
			}
			if rng.IntN(2) == 0 {
				c.NetTell(true)
				require.Equal(t, u.model, told, "seed %d, step %d", seed, step)
			}
		}
	}
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

// TestAllocsMap: what a map's keys are, and new values of them, cost no memory; a key that comes again costs what Go's own map takes.
func TestAllocsMap(t *testing.T) {
	var m fastarray.Map[uint32, uint64]
	for k := range uint32(50) {
		require.NoError(t, m.Set(k, 1))
	}
	n := uint64(0)
	require.Zero(t, testing.AllocsPerRun(2000, func() {
		n++
		k := uint32(n % 50)
		if m.Set(k, n) != nil || m.Delete(k) != nil || m.Set(k, n) != nil {
			t.Fatal("it doesn't take a key")
		}
		if v, ok := m.Get(k); !ok || v != n {
			t.Fatal("it has another value")
		}
	}))
}
