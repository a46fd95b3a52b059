package layout

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// pair is an object, its layout, and the other end's view of both.
type pair struct {
	t      testing.TB
	l      *Layout
	shadow *Shadow
	remote *Remote
	src    reflect.Value
	dst    reflect.Value
	buf    []byte
}

func newPair(t testing.TB, typ reflect.Type) *pair {
	l, err := Build(typ)
	require.NoError(t, err, "%v", typ)
	p := &pair{t: t, l: l, shadow: l.NewShadow(), src: reflect.New(typ), dst: reflect.New(typ), buf: make([]byte, 1<<16)}
	p.remote = p.schema(l)
	require.NoError(t, p.remote.Match(l))
	return p
}

// schemaBytes is the description of the layout.
func (p *pair) schemaBytes() []byte {
	w := bitio.NewWriter(p.buf)
	p.l.WriteSchema(w)
	require.NoError(p.t, w.Err())
	return w.Bytes()
}

// schema sends a layout's description through bits.
func (p *pair) schema(l *Layout) *Remote {
	var w bitio.Writer
	w.Reset(p.buf)
	l.WriteSchema(&w)
	require.NoError(p.t, w.Err())
	r := bitio.NewReader(w.Bytes(), w.Len())
	m := ReadSchema(r)
	require.NoError(p.t, r.Err())
	require.Zero(p.t, r.Remaining())
	return m
}

// fill fills a field with values that fit, but for numbers of its own.
func (p *pair) fill(rng *rand.Rand, field reflect.Value) {
	old := reflect.New(field.Type()).Elem()
	old.Set(field)
	for fits := false; !fits; {
		field.Set(old)
		fill(rng, field)
		fits = true
		for i := range p.l.Units {
			fits = fits && (!p.l.Units[i].Kind.IsBlob() || p.l.Unfit(p.src.UnsafePointer(), i) == nil)
		}
	}
}

func (p *pair) compare(m Mask) Mask {
	return p.l.Compare(p.shadow, p.src.UnsafePointer(), m)
}

func (p *pair) write(i int, base *Base) *bitio.Writer {
	w := bitio.NewWriter(p.buf)
	p.l.WriteUnit(w, p.shadow, i, base)
	require.NoError(p.t, w.Err())
	return w
}

// keep puts numbers at a time of a past.
func (p *pair) keep(past *Past, time int, words []uint64) {
	if past.History == nil {
		h := p.l.NewHistory(Points)
		past.History = &h
	}
	past.At[time] = time
	p.l.Remember(past.History, time, &Shadow{Words: words})
}

// past makes up earlier times of an object that now has words, or none, or one: numbers that move, stand or leap.
func (p *pair) past(rng *rand.Rand, words []uint64) *Past {
	past := &Past{Mask: p.l.Deltas, Age: 1 + rng.IntN(MaxAge)}
	words = append([]uint64{}, words...)
	p.keep(past, 0, words)
	if rng.IntN(4) == 0 || p.l.Deltas == 0 {
		return past
	}
	past.Gap, past.Form, past.Predicted = 1+rng.IntN(MaxGap), Form(rng.IntN(4)), p.l.Deltas
	for i := 1; i < Points; i++ {
		for m := p.l.Deltas; m != 0; m &= m - 1 {
			u := &p.l.Units[bits.TrailingZeros64(m)]
			for j := range words[u.first:][:u.N] {
				v := words[u.first+j]
				switch rng.IntN(4) {
				case 0:
					v += uint64(rng.IntN(9))
				case 1:
					v = rng.Uint64()
				}
				if u.Kind == Angle {
					v &= 1<<u.Bits - 1
				}
				words[u.first+j] = v
			}
		}
		p.keep(past, i, words)
	}
	p.l.Predict(p.shadow, past)
	return past
}

// TestRandomStructs sends random values of random structs, what changed of them, against what was sent last or alone, and
// compares with reflection both what changed and what arrived.
func TestRandomStructs(t *testing.T) {
	kinds := Mask(0)
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		typ := randomStruct(rng, 2, 1+rng.IntN(5), false)
		p := newPair(t, typ)
		p.compare(p.l.All()) // even an empty slice is news the first time
		want := naive(p.src.Elem(), nil)
		words := make([]uint64, p.l.Words()) // what the other end has
		for step := range 12 {
			p.fill(rng, p.src.Elem().Field(rng.IntN(typ.NumField())))
			before := want
			want = naive(p.src.Elem(), nil)
			changed := p.compare(p.l.All())
			require.Zero(t, p.compare(p.l.All()), "nothing changes between two compares")
			past := p.past(rng, words)
			base := &Base{Past: past}
			for i := range p.l.Units {
				u := &p.l.Units[i]
				kinds |= 1 << u.Kind
				where := fmt.Sprintf("seed %d step %d: %s of %v", seed, step, u.Path, typ)
				differs := !reflect.DeepEqual(at(p.src.Elem(), before, u.Path), at(p.src.Elem(), want, u.Path))
				if u.Kind == Max { // which tells one over its maximum from the maximum
					require.True(t, !differs || changed>>i&1 != 0, where)
				} else {
					require.Equal(t, differs, changed>>i&1 != 0, where)
				}
				v := words[p.l.Units[i].first:][:u.N]
				b, from := base, past
				if rng.IntN(2) == 0 {
					b, from = nil, nil
				}
				w := p.write(i, b)
				r := bitio.NewReader(w.Bytes(), w.Len())
				told := p.remote.ReadUnit(r, i, v, from, p.l.Object(p.dst.UnsafePointer()))
				require.NoError(t, r.Err(), where)
				require.Zero(t, r.Remaining(), where)
				if !u.Kind.IsBlob() {
					require.Equal(t, differs, told, where)
				}
			}
			require.Equal(t, want, naive(p.dst.Elem(), nil), "seed %d step %d: %v", seed, step, typ)
		}
	}
	require.Equal(t, Mask(1)<<kinds0-1, kinds, "every kind but fast arrays was among them")
}

// kinds0 is how many kinds there are without fast arrays, which are the last.
const kinds0 = Fast

// TestUnitsOfValues sends single units straight from values, as parameters and elements of lists go.
func TestUnitsOfValues(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		typ := randomStruct(rng, 2, 1+rng.IntN(5), true)
		l, err := BuildValue(typ)
		if err != nil {
			require.ErrorIs(t, err, ErrKind, "only Vars can't be")
			continue
		}
		src, dst := reflect.New(typ), reflect.New(typ)
		fill(rng, src.Elem())
		fill(rng, dst.Elem())
		old := naive(dst.Elem(), nil)
		m := Mask(rng.Uint64()) & l.All()
		w := bitio.NewWriter(make([]byte, 1<<16))
		l.WriteUnits(w, src.UnsafePointer(), m)
		r := bitio.NewReader(w.Bytes(), w.Len())
		l.ReadUnits(r, dst.UnsafePointer(), m)
		require.NoError(t, r.Err())
		require.Zero(t, r.Remaining())
		want, got := naive(src.Elem(), nil), naive(dst.Elem(), nil)
		for i := range l.Units {
			path := l.Units[i].Path
			if m>>i&1 == 0 {
				require.Equal(t, at(dst.Elem(), old, path), at(dst.Elem(), got, path))
			} else {
				require.Equal(t, at(src.Elem(), want, path), at(dst.Elem(), got, path), "seed %d: %s of %v", seed, path, typ)
			}
		}
		w = bitio.NewWriter(make([]byte, 1<<16))
		l.WriteValue(w, src.UnsafePointer())
		r = bitio.NewReader(w.Bytes(), w.Len())
		l.ReadValue(r, dst.UnsafePointer(), nil)
		require.NoError(t, r.Err())
		require.Equal(t, want, naive(dst.Elem(), nil))
	}
}

// TestSlicesKeepTheirMemory: a copy of a value isn't changed by what is read into the value.
func TestSlicesKeepTheirMemory(t *testing.T) {
	type value struct{ S []uint16 }
	l, err := BuildValue(reflect.TypeFor[value]())
	require.NoError(t, err)
	src, dst := value{[]uint16{1, 2}}, value{[]uint16{8, 9}}
	old := dst
	w := bitio.NewWriter(make([]byte, 100))
	l.WriteUnits(w, unsafe.Pointer(&src), 1)
	l.ReadUnits(bitio.NewReader(w.Bytes(), w.Len()), unsafe.Pointer(&dst), 1)
	require.Equal(t, src, dst)
	require.Equal(t, []uint16{8, 9}, old.S)
}

// TestTruncated reads every beginning of every unit's bits: it is an error, the object may keep what was.
func TestTruncated(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := newPair(t, randomStruct(rng, 2, 1+rng.IntN(5), false))
		fill(rng, p.src.Elem())
		p.compare(p.l.All())
		past := p.past(rng, make([]uint64, p.l.Words()))
		for i := range p.l.Units {
			for _, from := range []*Past{nil, past} {
				if from != nil && !p.l.Units[i].HasDelta() {
					continue
				}
				w := p.write(i, &Base{Past: from})
				v := make([]uint64, MaxNumbers)
				for n := range w.Len() {
					for _, obj := range []Object{p.l.Object(p.dst.UnsafePointer()), {}} {
						r := bitio.NewReader(w.Bytes(), n)
						p.remote.ReadUnit(r, i, v, from, obj)
						require.Error(t, r.Err(), "seed %d: %s, %d of %d bits", seed, p.l.Units[i].Path, n, w.Len())
					}
				}
				r := bitio.NewReader(w.Bytes(), w.Len())
				p.remote.ReadUnit(r, i, v, from, Object{})
				require.NoError(t, r.Err())
				require.Zero(t, r.Remaining(), "what we don't have is skipped as a whole")
			}
		}
	}
}

type numbers struct {
	Pos  struct{ X, Y, Z float64 } `net:"q=0.01"`
	Rot  [2]float32                `net:"rot=16"`
	HP   uint8                     `net:"max=100"`
	On   bool                      `net:""`
	Mana int32                     `net:""`
	Raw  float32                   `net:""`
}

// TestAllocs: comparing, writing and reading numbers allocates nothing.
func TestAllocs(t *testing.T) {
	p := newPair(t, reflect.TypeFor[numbers]())
	src := p.src.Interface().(*numbers)
	words := make([]uint64, p.l.Words())
	var past Past
	base := &Base{Past: &past}
	for i := range past.At {
		p.keep(&past, i, words)
	}
	var w bitio.Writer
	var r bitio.Reader
	require.Zero(t, testing.AllocsPerRun(100, func() {
		src.Pos.X++
		src.Rot[1] += 5
		src.Mana--
		p.l.Remember(past.History, 0, p.shadow)
		changed := p.compare(p.l.All())
		past.Reset()
		past.Mask, past.Predicted, past.Age, past.Gap, past.Form = p.l.Deltas, p.l.Deltas, 3, 1, Twelve
		p.l.Predict(p.shadow, &past)
		w.Reset(p.buf)
		for m := changed; m != 0; m &= m - 1 {
			p.l.WriteUnit(&w, p.shadow, bits.TrailingZeros64(m), base)
		}
		r.Reset(w.Bytes(), w.Len())
		for m := changed; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m)
			p.remote.ReadUnit(&r, i, words[p.l.Units[i].first:], &past, p.l.Object(p.dst.UnsafePointer()))
		}
		if r.Err() != nil || changed == 0 {
			t.Error(changed, r.Err())
		}
	}))
}

// TestAllocsBlobs: comparing what isn't numbers allocates nothing either.
func TestAllocsBlobs(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		S string   `net:""`
		L []uint16 `net:""`
		B []byte   `net:""`
		O own      `net:""`
	}]())
	list := p.src.Elem().Field(1).Addr().Interface().(*[]uint16)
	*list = make([]uint16, 10)
	p.compare(p.l.All())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		(*list)[3]++
		if p.compare(p.l.All()) != 2 {
			t.Error("no change seen")
		}
	}))
}

// FuzzReadUnit reads arbitrary bits as units of each kind, into an object.
func FuzzReadUnit(f *testing.F) {
	f.Add([]byte{255, 255, 255, 255, 1, 2, 3, 4, 5, 6, 7, 8}, uint64(1), true)
	f.Add([]byte{}, uint64(7), false)
	f.Fuzz(func(t *testing.T, b []byte, seed uint64, delta bool) {
		rng := rand.New(rand.NewPCG(seed%64, 5))
		p := newPair(t, randomStruct(rng, 2, 4, false))
		r := bitio.NewReader(b, len(b)*8)
		past := p.past(rng, make([]uint64, p.l.Words()))
		for i := range p.l.Units {
			from := past
			if !delta {
				from = nil
			}
			p.remote.ReadUnit(r, i, make([]uint64, MaxNumbers), from, p.l.Object(p.dst.UnsafePointer()))
		}
		p.l.Compare(p.shadow, p.dst.UnsafePointer(), p.l.All())
	})
}

// FuzzReadSchema reads arbitrary descriptions, and then units that are described so.
func FuzzReadSchema(f *testing.F) {
	w := bitio.NewWriter(make([]byte, 1000))
	l, _ := Build(reflect.TypeFor[numbers]())
	l.WriteSchema(w)
	f.Add(w.Bytes(), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, schema, values []byte) {
		m := ReadSchema(bitio.NewReader(schema, len(schema)*8))
		if m == nil {
			return
		}
		if len(m.Units) > MaxUnits || m.kept.number > MaxUnits*MaxNumbers {
			t.Fatal("no bounds")
		}
		var obj Object
		if m.Match(l) == nil {
			obj = l.Object(unsafe.Pointer(&numbers{}))
		}
		r := bitio.NewReader(values, len(values)*8)
		for i := range m.Units {
			m.ReadUnit(r, i, make([]uint64, MaxNumbers), nil, obj)
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	p := newPair(b, reflect.TypeFor[numbers]())
	src := p.src.Interface().(*numbers)
	b.ReportAllocs()
	for b.Loop() {
		src.Pos.X++
		p.compare(p.l.All())
	}
}

func BenchmarkWriteUnit(b *testing.B) {
	for name, delta := range map[string]bool{"absolute": false, "delta": true} {
		b.Run(name, func(b *testing.B) {
			p := newPair(b, reflect.TypeFor[numbers]())
			p.src.Interface().(*numbers).Pos.X = 1000
			p.compare(p.l.All())
			var base *Base
			if delta {
				base = &Base{Past: &Past{Mask: 1}}
				p.keep(base.Past, 0, p.shadow.Words)
			}
			var w bitio.Writer
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(p.buf)
				p.l.WriteUnit(&w, p.shadow, 0, base)
			}
			b.ReportMetric(float64(w.Len()), "bits")
		})
	}
}

func BenchmarkReadUnit(b *testing.B) {
	p := newPair(b, reflect.TypeFor[numbers]())
	p.src.Interface().(*numbers).Pos.X = 1000
	p.compare(p.l.All())
	w := p.write(0, nil)
	v := make([]uint64, MaxNumbers)
	var r bitio.Reader
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(w.Bytes(), w.Len())
		p.remote.ReadUnit(&r, 0, v, nil, p.l.Object(p.dst.UnsafePointer()))
	}
}
