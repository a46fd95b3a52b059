package fastarray

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type item3 struct {
	Name  string
	Count uint16  `net:"max=999"`
	Wear  float32 `net:"q=0.25"`
	Mods  []int16
	At    struct{ X, Y float64 } `net:"q=0.5"`
}

func (i item3) String() string {
	return fmt.Sprintf("%s %d %v %v %v", i.Name, i.Count, i.Wear, append([]int16{}, i.Mods...), i.At)
}

func randomItem(rng *rand.Rand) (v item3) {
	v.Name = strings.Repeat("é", rng.IntN(4))
	v.Count, v.Wear = uint16(rng.IntN(1000)), float32(rng.IntN(40))/4
	v.At.X = float64(rng.IntN(100)) / 2
	for range rng.IntN(3) {
		v.Mods = append(v.Mods, int16(rng.IntN(100)-50))
	}
	return v
}

// text is a list in its order.
func text(l *List[item3]) string {
	var b strings.Builder
	for id, v := range l.All {
		fmt.Fprintf(&b, "%d: %v\n", id, v)
	}
	return b.String()
}

// model is the naive list: elements in the order in which they came.
type model struct {
	ids    []ID
	values map[ID]item3
}

func (m *model) text() string {
	var b strings.Builder
	for _, id := range m.ids {
		fmt.Fprintf(&b, "%d: %v\n", id, m.values[id])
	}
	return b.String()
}

func (m *model) change(t *testing.T, rng *rand.Rand, l *List[item3]) {
	switch r := rng.IntN(100); {
	case r < 30 || len(m.ids) == 0:
		v := randomItem(rng)
		id, err := l.Add(v)
		if len(m.ids) == Max {
			require.ErrorIs(t, err, ErrFull)
			return
		}
		require.NoError(t, err)
		m.ids = append(m.ids, id)
		m.values[id] = v
	case r < 31:
		require.NoError(t, l.Clear())
		m.ids, m.values = nil, map[ID]item3{}
	case r < 50:
		i := rng.IntN(len(m.ids))
		require.NoError(t, l.Remove(m.ids[i]))
		delete(m.values, m.ids[i])
		m.ids = slices.Delete(m.ids, i, i+1)
	default:
		id := m.ids[rng.IntN(len(m.ids))]
		v, ok := l.Find(id)
		require.True(t, ok)
		switch rng.IntN(4) {
		case 0:
			v.Count = uint16(rng.IntN(1000))
		case 1:
			v.Mods = append(slices.Clone(v.Mods), 7)[:1]
		case 2:
			v.At.Y++
		case 3:
			v = randomItem(rng)
		}
		require.NoError(t, l.Set(id, v))
		m.values[id] = v
	}
}

// heard is a mirror made of callbacks alone.
type heard struct {
	t      *testing.T
	values map[ID]item3
}

func listen(t *testing.T, l *List[item3]) *heard {
	h := &heard{t, map[ID]item3{}}
	l.OnAdd = func(id ID, v item3) {
		require.NotContains(t, h.values, id)
		h.values[id] = v
	}
	l.OnChange = func(id ID, old, now item3) {
		require.Equal(t, h.values[id].String(), old.String())
		h.values[id] = now
	}
	l.OnRemove = func(id ID, old item3) {
		require.Equal(t, h.values[id].String(), old.String())
		delete(h.values, id)
	}
	return h
}

func (h *heard) text(l *List[item3]) string {
	m := model{values: h.values}
	for id := range h.values {
		m.ids = append(m.ids, id)
	}
	slices.Sort(m.ids)
	return m.text()
}

func update(t *testing.T, l *List[item3], base uint32) []byte {
	var w bitio.Writer
	w.Reset(make([]byte, 1<<14))
	l.NetWrite(&w, base)
	require.NoError(t, w.Err())
	return w.Bytes()
}

// TestModel changes a list at random beside a naive one; what is different since versions that are known to have arrived
// goes to mirrors, most of it lost, and acks too.
func TestModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var l List[item3]
			m := model{values: map[ID]item3{}}
			const mirrors = 3
			var mirror [mirrors]List[item3]
			var known [mirrors]uint32
			var heards [mirrors]*heard
			var last [mirrors]string
			for i := range mirror {
				heards[i] = listen(t, &mirror[i])
			}
			for step := range 1000 {
				for range rng.IntN(1 + step%40) {
					m.change(t, rng, &l)
				}
				require.Equal(t, m.text(), text(&l))
				for i := range mirror {
					if rng.IntN(3) == 0 || l.NetKey() == known[i] {
						continue
					}
					b := update(t, &l, known[i])
					if rng.IntN(10) < 2+3*i { // lost
						continue
					}
					r := bitio.NewReader(b, len(b)*8)
					require.NoError(t, mirror[i].NetRead(r), "seed %d step %d", seed, step)
					if r.Remaining() > 7 { // the mirror had it, the ack was lost
						require.Equal(t, m.text(), last[i])
					}
					require.Equal(t, m.text(), text(&mirror[i]), "seed %d step %d", seed, step)
					last[i] = text(&mirror[i])
					if rng.IntN(2) == 0 { // the ack arrives
						known[i] = l.NetKey()
					}
					if rng.IntN(4) == 0 {
						mirror[i].NetTell(true)
						require.Equal(t, m.text(), heards[i].text(&mirror[i]), "seed %d step %d", seed, step)
					}
				}
			}
		})
	}
}

// TestBits keeps the sum of what elements take exact, as it decides when the list is full.
func TestBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var l List[item3]
	m := model{values: map[ID]item3{}}
	for range 3000 {
		m.change(t, rng, &l)
		var w bitio.Writer
		w.Reset(make([]byte, 1<<15))
		l.writeAll(&w)
		require.NoError(t, w.Err())
		require.Equal(t, w.Len(), l.wholeBits())
	}
}

// TestSmall: what is sent is the field that changed.
func TestSmall(t *testing.T) {
	var l List[item3]
	var ids []ID
	for range 300 {
		id, err := l.Add(item3{Name: "a long name that needn't be sent again", Count: 3})
		require.NoError(t, err)
		ids = append(ids, id)
	}
	base := l.NetKey()
	v, _ := l.Find(ids[100])
	v.Count++
	require.NoError(t, l.Set(ids[100], v))
	require.LessOrEqual(t, len(update(t, &l, base)), 10)
	require.NoError(t, l.Set(ids[100], v))
	require.Equal(t, base+1, l.NetKey(), "slices that aren't there can't differ")
	v.Wear += 0.01
	require.NoError(t, l.Set(ids[100], v))
	require.Equal(t, base+1, l.NetKey(), "less than half a step is no change")
}

func TestFull(t *testing.T) {
	var many List[uint8]
	for range Max {
		_, err := many.Add(1)
		require.NoError(t, err)
	}
	_, err := many.Add(1)
	require.ErrorIs(t, err, ErrFull)
	require.NoError(t, many.Remove(5))
	_, err = many.Add(1)
	require.NoError(t, err)

	var large List[string]
	text := strings.Repeat("x", 1000)
	n := 0
	for ; ; n++ {
		if _, err = large.Add(text); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, 14, n, "of 1000 bytes and 2 for the length and 1 for the id in 15,000")
	id, err := large.Add("small")
	require.NoError(t, err)
	require.ErrorIs(t, large.Set(id, text), ErrFull)
	v, _ := large.Find(id)
	require.Equal(t, "small", v)
	var w bitio.Writer
	w.Reset(make([]byte, 1<<14))
	large.NetWrite(&w, 0)
	require.NoError(t, w.Err(), "a full list fits a fast array's 16 KiB")
}

func TestErrors(t *testing.T) {
	var l List[item3]
	require.ErrorIs(t, l.Set(1, item3{}), ErrNoElement)
	require.ErrorIs(t, l.Remove(1), ErrNoElement)
	var bad List[map[int]int]
	_, err := bad.Add(nil)
	require.ErrorIs(t, err, layout.ErrKind)
	_, err = bad.NetForm()
	require.ErrorIs(t, err, layout.ErrKind)

	_, err = l.Add(item3{})
	require.NoError(t, err)
	b := update(t, &l, 0)
	var mirror List[item3]
	require.NoError(t, mirror.NetRead(bitio.NewReader(b, len(b)*8)))
	_, err = mirror.Add(item3{})
	require.ErrorIs(t, err, ErrMirror)
	require.ErrorIs(t, mirror.Set(1, item3{}), ErrMirror)
	require.ErrorIs(t, mirror.Remove(1), ErrMirror)
	require.ErrorIs(t, mirror.Clear(), ErrMirror)
}

// TestForgotten: who is behind all remembered removals gets the whole list, and only he.
func TestForgotten(t *testing.T) {
	var l List[uint16]
	var ids []ID
	for i := range 1000 {
		id, err := l.Add(uint16(i))
		require.NoError(t, err)
		ids = append(ids, id)
	}
	base := l.NetKey()
	whole := func() bool {
		var w bitio.Writer
		w.Reset(make([]byte, 1<<14))
		l.NetWrite(&w, base)
		return bitio.NewReader(w.Bytes(), 1).ReadBool()
	}
	for i := range maxTombstones {
		require.False(t, whole(), "%d", i)
		require.NoError(t, l.Remove(ids[i]))
	}
	require.False(t, whole())
	require.NoError(t, l.Remove(ids[maxTombstones]))
	require.True(t, whole())
	require.LessOrEqual(t, len(l.gone), maxTombstones)
}

// TestVersionWraps goes over the end of the versions.
func TestVersionWraps(t *testing.T) {
	l := List[uint16]{version: 1<<32 - 3}
	var mirror List[uint16]
	base := uint32(0)
	for i := range 10 {
		_, err := l.Add(uint16(i))
		require.NoError(t, err)
		var w bitio.Writer
		w.Reset(make([]byte, 1<<10))
		l.NetWrite(&w, base)
		require.NoError(t, mirror.NetRead(bitio.NewReader(w.Bytes(), w.Len())))
		require.Equal(t, i+1, mirror.Len())
		base = l.NetKey()
		require.NotZero(t, base)
	}
}

// TestQueueBounded: elements that come and go without anybody being told leave nothing behind.
func TestQueueBounded(t *testing.T) {
	var l, mirror List[item3]
	heard := listen(t, &mirror)
	kept, err := l.Add(item3{Count: 1})
	require.NoError(t, err)
	base := uint32(0)
	for range 20000 {
		id, err := l.Add(item3{})
		require.NoError(t, err)
		for range 2 {
			b := update(t, &l, base)
			base = l.NetKey()
			require.NoError(t, mirror.NetRead(bitio.NewReader(b, len(b)*8)))
			_ = l.Remove(id)
		}
	}
	require.Less(t, len(mirror.queue), 2*Max)
	mirror.NetTell(true)
	require.Equal(t, map[ID]item3{kept: {Count: 1}}, heard.values)
}

// TestTruncated reads every beginning of an update: it is an error, and what was there stays in order.
func TestTruncated(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	var l List[item3]
	m := model{values: map[ID]item3{}}
	for range 60 {
		m.change(t, rng, &l)
	}
	base := l.NetKey()
	first := update(t, &l, 0)
	for range 40 {
		m.change(t, rng, &l)
	}
	for _, from := range []uint32{0, base} {
		var w bitio.Writer
		w.Reset(make([]byte, 1<<14))
		l.NetWrite(&w, from)
		for n := range w.Len() {
			var mirror List[item3]
			require.NoError(t, mirror.NetRead(bitio.NewReader(first, len(first)*8)))
			require.Error(t, mirror.NetRead(bitio.NewReader(w.Bytes(), n)), "%d of %d bits", n, w.Len())
			sorted := slices.IsSortedFunc(mirror.items, func(a, b item[item3]) int { return int(a.id) - int(b.id) })
			require.True(t, sorted)
			require.NoError(t, mirror.NetRead(bitio.NewReader(w.Bytes(), w.Len())), "the whole of it mends that")
			require.Equal(t, m.text(), text(&mirror))
		}
	}
}

// TestAllocs: looking at a list and writing what changed of it allocates nothing.
func TestAllocs(t *testing.T) {
	var l List[item3]
	for i := range 100 {
		_, err := l.Add(item3{Name: "something", Count: uint16(i)})
		require.NoError(t, err)
	}
	buf := make([]byte, 1<<14)
	var w bitio.Writer
	n := uint16(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		base := l.NetKey()
		v, _ := l.Find(50)
		n++
		v.Count = n
		if err := l.Set(50, v); err != nil {
			t.Error(err)
		}
		w.Reset(buf)
		l.NetWrite(&w, base)
	}))
}

// FuzzNetRead gives a mirror two arbitrary updates.
func FuzzNetRead(f *testing.F) {
	var l List[item3]
	for i := range 5 {
		_, _ = l.Add(item3{Name: "n", Count: uint16(i), Mods: []int16{1}})
	}
	var w bitio.Writer
	w.Reset(make([]byte, 1<<14))
	l.NetWrite(&w, 0)
	whole := slices.Clone(w.Bytes())
	_ = l.Remove(2)
	_ = l.Set(3, item3{Count: 9})
	_, _ = l.Add(item3{})
	w.Reset(make([]byte, 1<<14))
	l.NetWrite(&w, 5)
	f.Add(whole, w.Bytes())
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var l List[item3]
		told := 0
		l.OnAdd = func(ID, item3) { told++ }
		l.OnRemove = func(ID, item3) { told-- }
		for _, data := range [][]byte{a, b, a} {
			_ = l.NetRead(bitio.NewReader(data, len(data)*8))
			if len(l.items) > 2*Max || len(l.queue) > 8*Max {
				t.Fatal("no bounds")
			}
			if !slices.IsSortedFunc(l.items, func(a, b item[item3]) int { return int(int64(a.id) - int64(b.id)) }) {
				t.Fatal("out of order")
			}
			l.NetTell(true)
			if told != l.Len() {
				t.Fatalf("told of %d, there are %d", told, l.Len())
			}
		}
	})
}

// BenchmarkNetWrite writes one changed field of one element of a hundred.
func BenchmarkNetWrite(b *testing.B) {
	var l List[item3]
	for i := range 100 {
		_, _ = l.Add(item3{Name: "something", Count: uint16(i)})
	}
	buf := make([]byte, 1<<14)
	var w bitio.Writer
	base := l.NetKey()
	_ = l.Set(50, item3{Name: "something", Count: 777})
	b.ReportAllocs()
	for b.Loop() {
		w.Reset(buf)
		l.NetWrite(&w, base)
	}
	b.ReportMetric(float64(w.Len()), "bits")
}

// TestParallel writes one list for many connections at once, as Config.Parallel does; the race detector looks on.
func TestParallel(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	var l List[item3]
	m := model{values: map[ID]item3{}}
	for range 300 {
		m.change(t, rng, &l)
	}
	var group sync.WaitGroup
	var bits [8]int
	for i := range bits {
		group.Go(func() {
			var w bitio.Writer
			w.Reset(make([]byte, 1<<14))
			l.NetWrite(&w, 250)
			bits[i] = w.Len()
		})
	}
	group.Wait()
	for _, n := range bits {
		require.Equal(t, bits[0], n)
	}
}

// TestReadsAll: of an update that a newer one has overtaken all is read, too.
func TestReadsAll(t *testing.T) {
	var l, mirror List[item3]
	_, err := l.Add(item3{Count: 1})
	require.NoError(t, err)
	mirror.version = l.NetKey()
	base := l.NetKey()
	_, err = l.Add(item3{Count: 2})
	require.NoError(t, err)
	w := bitio.NewWriter(make([]byte, 1<<10))
	l.NetWrite(w, base)
	for range 2 {
		r := bitio.NewReader(w.Bytes(), w.Len())
		require.NoError(t, mirror.NetRead(r))
		require.Zero(t, r.Remaining())
		require.Equal(t, 1, mirror.Len())
	}
}
