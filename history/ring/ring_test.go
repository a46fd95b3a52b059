package ring_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/history/ring"
)

// The naive ring: a map, swept after each insert.
type model struct {
	size   int64
	newest int64
	held   map[int64]int
}

func (m *model) insert(seq int64, v int) bool {
	if seq < 0 || seq <= m.newest-m.size {
		return false
	}
	m.newest = max(m.newest, seq)
	m.held[seq] = v
	for old := range m.held {
		if old <= m.newest-m.size {
			delete(m.held, old)
		}
	}
	return true
}

// nextSeq is near the newest, mostly, and sometimes rounds ahead of it.
func nextSeq(rnd *rand.Rand, m *model) int64 {
	switch rnd.IntN(10) {
	case 0:
		return m.newest + rnd.Int64N(5*m.size)
	case 1:
		return m.newest - m.size - rnd.Int64N(3*m.size)
	default:
		return m.newest - m.size + rnd.Int64N(m.size+3)
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		size := 1 << rnd.IntN(7)
		r := ring.New[int](size)
		require.Equal(t, size, r.Size())
		m := &model{size: int64(size), newest: -1, held: map[int64]int{}}
		for step := range 400 {
			seq := nextSeq(rnd, m)
			switch rnd.IntN(20) {
			case 0:
				r.Reset()
				m.newest, m.held = -1, map[int64]int{}
			case 1, 2, 3:
				r.Remove(seq)
				delete(m.held, seq)
			default:
				e := r.Insert(seq)
				require.Equal(t, m.insert(seq, step), e != nil, "seed %d: insert %d", seed, seq)
				if e != nil {
					require.Zero(t, *e, "seed %d: %d isn't clean", seed, seq)
					*e = step
				}
			}
			checkSame(t, r, m, seed)
		}
	}
}

func checkSame(t *testing.T, r *ring.Ring[int], m *model, seed uint64) {
	newest, ok := r.Newest()
	require.Equal(t, m.newest, newest, "seed %d", seed)
	require.Equal(t, m.newest >= 0, ok, "seed %d", seed)
	for seq := m.newest - 2*m.size; seq <= m.newest+2*m.size; seq++ {
		want, held := m.held[seq]
		e := r.Lookup(seq)
		if held != (e != nil) || held && *e != want {
			t.Fatalf("seed %d: looked up %d, want %d (held: %v)", seed, seq, want, held)
		}
	}
}

// Of a hundred sequences one is inserted, over many rounds: what is found was put
// there under its own number, never one round or more before.
func TestStaleEntries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(99, 1))
	r := ring.New[int64](256)
	inserted := map[int64]bool{}
	for seq := range int64(300_000) {
		if rnd.IntN(100) == 0 {
			*r.Insert(seq) = seq
			inserted[seq] = true
		}
		newest, _ := r.Newest()
		for _, old := range []int64{seq, seq - 1, seq - 255, seq - 256, seq - 16384} {
			e := r.Lookup(old)
			want := inserted[old] && old > newest-256
			if want != (e != nil) || want && *e != old {
				t.Fatalf("at %d, looking for %d: %v, want %v", seq, old, e, want)
			}
		}
	}
}

func TestEdges(t *testing.T) {
	r := ring.New[string](4)
	require.Nil(t, r.Insert(-1))
	require.Nil(t, r.Lookup(-1))
	r.Remove(-1)
	*r.Insert(math.MaxInt64) = "last"
	require.Equal(t, "last", *r.Lookup(math.MaxInt64))
	require.Nil(t, r.Insert(0))
	require.Nil(t, r.Lookup(math.MinInt64))
	for _, size := range []int{-4, 0, 3, 6} {
		require.Panics(t, func() { ring.New[int](size) }, "size %d", size)
	}
}

func TestAllocs(t *testing.T) {
	r := ring.New[[4]int](64)
	seq := int64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		seq += 3
		r.Insert(seq)[0] = 1
		r.Insert(seq + 100)
		r.Remove(seq)
		if r.Lookup(seq+100) == nil {
			t.Fatal("not found")
		}
		r.Reset()
	}))
}

func Example() {
	inputs := ring.New[string](8)
	for seq, s := range []string{"left", "left", "jump"} {
		*inputs.Insert(int64(seq)) = s
	}
	fmt.Println(*inputs.Lookup(2))
	inputs.Insert(10) // the window moves: 0, 1 and 2 are gone
	fmt.Println(inputs.Lookup(2) == nil, inputs.Lookup(9) == nil)
	// Output:
	// jump
	// true true
}

// The same window in a map, for comparison.
func BenchmarkInsertLookup(b *testing.B) {
	b.Run("ring", func(b *testing.B) {
		r := ring.New[int](256)
		seq := int64(0)
		for b.Loop() {
			seq++
			*r.Insert(seq) = 1
			if r.Lookup(seq-100) == nil && seq > 100 {
				b.Fatal(seq)
			}
		}
	})
	b.Run("map", func(b *testing.B) {
		m := map[int64]int{}
		seq := int64(0)
		for b.Loop() {
			seq++
			m[seq] = 1
			delete(m, seq-256)
			if _, ok := m[seq-100]; !ok && seq > 100 {
				b.Fatal(seq)
			}
		}
	})
	b.Run("ring, most skipped", func(b *testing.B) {
		r := ring.New[int](256)
		seq := int64(0)
		for b.Loop() {
			seq += 99
			*r.Insert(seq) = 1
		}
	})
}

// TestReleases checks that what was removed, passed over or reset isn't kept from the garbage collector.
func TestReleases(t *testing.T) {
	gone := func(p weak.Pointer[[64]byte]) bool {
		runtime.GC()
		return p.Value() == nil
	}
	r := ring.New[*[64]byte](4)
	put := func(seq int64) weak.Pointer[[64]byte] {
		entry := new([64]byte)
		*r.Insert(seq) = entry
		return weak.Make(entry)
	}
	removed := put(1)
	require.False(t, gone(removed))
	r.Remove(1)
	require.True(t, gone(removed))
	passed := put(2)
	put(7)
	require.True(t, gone(passed))
	reset := put(8)
	r.Reset()
	require.True(t, gone(reset))
	leapt := put(9)
	put(100)
	require.True(t, gone(leapt))
	runtime.KeepAlive(r)
}
