package layout

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

func TestMatch(t *testing.T) {
	type before struct {
		Gone  string     `net:""`
		A     int32      `net:""`
		B     []int16    `net:""`
		Pos   [3]float32 `net:"q=0.5"`
		Limit uint16     `net:"max=10"`
		C     time.Time  `net:""`
	}
	type after struct {
		Limit uint16     `net:"max=1000"`
		New   float64    `net:""`
		Pos   [3]float32 `net:"q=0.25"`
		B     []int16    `net:""`
		A     int64      `net:""`
	}
	p := newPair(t, reflect.TypeFor[before]())
	l, err := Build(reflect.TypeFor[after]())
	require.NoError(t, err)
	m := p.schema(p.l)
	require.NoError(t, m.Match(l), "added, removed, reordered, other bounds and steps")
	*p.src.Interface().(*before) = before{"gone", -5, []int16{1, 2}, [3]float32{1, 2.5, 3}, 9, time.Time{}}
	p.compare(p.l.All())
	dst := after{New: 7}
	mask := Mask(0)
	for i := range p.l.Units {
		w := p.write(i, nil)
		r := bitio.NewReader(w.Bytes(), w.Len())
		m.ReadUnit(r, i, make([]uint64, MaxNumbers), nil, l.Object(unsafe.Pointer(&dst)))
		require.NoError(t, r.Err())
		require.Zero(t, r.Remaining())
		for j := range l.Units {
			if m.Own(i) == &l.Units[j] {
				mask |= 1 << j
			}
		}
	}
	require.Equal(t, after{9, 7, [3]float32{1, 2.5, 3}, []int16{1, 2}, -5}, dst)
	require.Equal(t, l.All()&^l.FieldMask("New"), mask)

	for name, typ := range map[string]reflect.Type{
		"A is 1 int there and 1 uint here": reflect.TypeFor[struct {
			A uint32 `net:""`
		}](),
		"Pos is 3 step there and 2 step here": reflect.TypeFor[struct {
			Pos [2]float32 `net:"q=0.5"`
		}](),
		"Pos is 3 step there and 3 float32 here": reflect.TypeFor[struct {
			Pos [3]float32 `net:""`
		}](),
		"C is a custom of something else there": reflect.TypeFor[struct {
			C netip.Addr `net:""`
		}](),
		"B is a slice of something else there": reflect.TypeFor[struct {
			B []uint16 `net:""`
		}](),
	} {
		l, err := Build(typ)
		require.NoError(t, err)
		err = p.schema(p.l).Match(l)
		require.ErrorIs(t, err, ErrRetyped)
		require.ErrorContains(t, err, name)
	}
}

// TestSaturate: numbers that only the peer's type can hold arrive as our largest.
func TestSaturate(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		A int64   `net:""`
		B uint64  `net:""`
		C uint16  `net:"max=60000"`
		D uint16  `net:"max=60000"`
		E []int64 `net:""`
	}]())
	l, err := Build(reflect.TypeFor[struct {
		A int8  `net:""`
		B uint8 `net:""`
		C uint8 `net:"max=250"`
		D uint8 `net:"max=255"`
	}]())
	require.NoError(t, err)
	m := p.schema(p.l)
	require.NoError(t, m.Match(l))
	for _, c := range []struct {
		a       int64
		b       uint64
		c       uint16
		wantA   int8
		b8, max uint8
		d       uint8
	}{{5, 6, 7, 5, 6, 7, 7}, {128, 256, 251, 127, 255, 250, 251}, {-129, math.MaxUint64, 60000, -128, 255, 250, 255}, {math.MinInt64, 255, 250, -128, 255, 250, 250}} {
		src := p.src.Elem()
		src.Field(0).SetInt(c.a)
		src.Field(1).SetUint(c.b)
		src.Field(2).SetUint(uint64(c.c))
		src.Field(3).SetUint(uint64(c.c))
		p.compare(p.l.All())
		dst := reflect.New(l.Type)
		for i := range p.l.Units {
			w := p.write(i, nil)
			m.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), i, make([]uint64, MaxNumbers), nil, l.Object(dst.UnsafePointer()))
		}
		require.Equal(t, []any{c.wantA, c.b8, c.max, c.d}, []any{int8(dst.Elem().Field(0).Int()), uint8(dst.Elem().Field(1).Uint()), uint8(dst.Elem().Field(2).Uint()), uint8(dst.Elem().Field(3).Uint())})
	}
}

// TestSchema: a description comes through as it was, and every beginning of it is refused.
func TestSchema(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := newPair(t, randomStruct(rng, 2, 1+rng.IntN(6), false))
		require.Equal(t, p.l.kept, p.remote.kept)
		require.Equal(t, p.l.All(), p.remote.All())
		require.Equal(t, p.l.Deltas, p.remote.Deltas)
		require.Equal(t, p.l.Refs, p.remote.Refs)
		for i := range p.l.Units {
			require.Equal(t, p.l.Units[i].Wire, p.remote.Units[i].Wire)
			require.Equal(t, p.l.Units[i].Path, p.remote.Units[i].Path)
			require.Same(t, &p.l.Units[i], p.remote.Own(i))
		}
		var w bitio.Writer
		w.Reset(p.buf)
		p.l.WriteSchema(&w)
		for n := range w.Len() {
			require.Nil(t, ReadSchema(bitio.NewReader(w.Bytes(), n)), "%d of %d bits", n, w.Len())
		}
	}
}

// TestImplausible refuses descriptions that no layout writes.
func TestImplausible(t *testing.T) {
	for i, u := range []Wire{
		{Kind: kinds}, {Kind: Bool, N: 5}, {Kind: Bool}, {Kind: String, N: 1}, {Kind: Angle, N: 1, Bits: 7}, {Kind: Angle, N: 1, Bits: 17},
		{Kind: Max, N: 1}, {Kind: Max, N: 1, Max: math.MaxUint32}, {Kind: Step, N: 1}, {Kind: Step, N: 1, Step: -1}, {Kind: Step, N: 1, Step: math.NaN()},
	} {
		l := &Layout{Units: []Unit{{Wire: u, Path: "X"}}}
		w := bitio.NewWriter(make([]byte, 1000))
		l.WriteSchema(w)
		r := bitio.NewReader(w.Bytes(), w.Len())
		require.Nil(t, ReadSchema(r), "%d: %v", i, u)
		require.ErrorContains(t, r.Err(), "no unit", "%d: %v", i, u)
	}
	w := bitio.NewWriter(make([]byte, 1000))
	w.WriteIntPacked(MaxUnits + 1)
	w.WriteBytes(make([]byte, 900))
	r := bitio.NewReader(w.Bytes(), w.Len())
	require.Nil(t, ReadSchema(r))
	require.ErrorIs(t, r.Err(), ErrMany)
}
