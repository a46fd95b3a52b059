package layout

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type vec struct{ X, Y, Z float32 }

type everything struct {
	Skipped int
	B       bool         `net:""`
	I8      int8         `net:""`
	I64     int64        `net:""`
	U16     uint16       `net:""`
	U64     uint64       `net:""`
	Max     uint8        `net:"max=100"`
	Pos     vec          `net:"q=0.01"`
	Raw     vec          `net:""`
	D       float64      `net:""`
	Step    float64      `net:"q=0.5"`
	Ref     netguid.GUID `net:"owner"`
	Name    string       `net:"initial"`
	Slots   [3]uint8     `net:"max=7,skipowner"`
}

func build(t testing.TB) *Layout {
	l, err := Build(reflect.TypeFor[everything]())
	require.NoError(t, err)
	return l
}

func random(rng *rand.Rand) everything {
	f := func() float32 { return float32(rng.IntN(200000)-100000) / 100 }
	return everything{B: rng.IntN(2) == 0, I8: int8(rng.Uint32()), I64: rng.Int64() - rng.Int64(), U16: uint16(rng.Uint32()), U64: rng.Uint64(),
		Max: uint8(rng.IntN(101)), Pos: vec{f(), f(), f()}, Raw: vec{f(), f(), f()}, D: rng.NormFloat64(), Step: float64(rng.IntN(100)) / 2,
		Ref: netguid.GUID(rng.Uint32()), Name: string(rune('a' + rng.IntN(26))), Slots: [3]uint8{uint8(rng.IntN(8)), 7, 0}}
}

// TestRoundTrip sends what changed from one object to another until both are alike, against a
// comparison by reflection.
func TestRoundTrip(t *testing.T) {
	const seed = 8
	rng := rand.New(rand.NewPCG(seed, 1))
	l := build(t)
	var src, dst everything
	shadow := l.NewShadow()
	buf := make([]byte, 1024)
	for i := range 2000 {
		if rng.IntN(3) == 0 {
			src = random(rng)
		} else {
			src.Pos.X += 0.02
			src.I64++
		}
		m := l.Compare(shadow, unsafe.Pointer(&src))
		require.Zero(t, l.Compare(shadow, unsafe.Pointer(&src)), "nothing changes between two compares")
		var w bitio.Writer
		w.Reset(buf)
		l.Write(&w, shadow, m)
		require.NoError(t, w.Err())
		got, err := l.Read(bitio.NewReader(w.Bytes(), w.Len()), unsafe.Pointer(&dst))
		require.NoError(t, err)
		require.Equal(t, m, got)
		require.InDelta(t, src.Pos.X, dst.Pos.X, 0.0051, "step %d, seed %d", i, seed)
		require.InDelta(t, src.Pos.Z, dst.Pos.Z, 0.0051)
		exact := dst
		exact.Pos = src.Pos
		require.Equal(t, src, exact, "step %d, seed %d", i, seed)
	}
}

func TestConditions(t *testing.T) {
	l := build(t)
	in := func(m Mask, path string) bool {
		for i := range l.Leaves {
			if l.Leaves[i].Path == path {
				return m>>i&1 != 0
			}
		}
		t.Fatalf("no %s", path)
		return false
	}
	for _, owner := range []bool{true, false} {
		for _, initial := range []bool{true, false} {
			m := l.Allowed(owner, initial)
			require.True(t, in(m, "B"))
			require.Equal(t, owner, in(m, "Ref"))
			require.Equal(t, !owner, in(m, "Slots[1]"))
			require.Equal(t, initial, in(m, "Name"))
		}
	}
}

func TestQuantize(t *testing.T) {
	f := Leaf{step: 0.01}
	for _, v := range []float64{0, 1.004, -1.006, 1e6} {
		require.InDelta(t, v, float64(unzigzag(f.quantize(v)))*f.step, 0.0051)
	}
	require.Zero(t, f.quantize(math.NaN()))
	require.Equal(t, int64(1<<52), unzigzag(f.quantize(math.Inf(1))))
	require.Equal(t, int64(-1<<52), unzigzag(f.quantize(math.Inf(-1))))
}

func TestBuildErrors(t *testing.T) {
	for _, c := range []struct {
		v    any
		want error
	}{
		{struct {
			M map[int]int `net:""`
		}{}, ErrKind},
		{struct {
			X float64 `net:"q=0"`
		}{}, ErrTag},
		{struct {
			X int `net:"fast"`
		}{}, ErrTag},
		{struct {
			X uint8 `net:"max=none"`
		}{}, ErrTag},
		{struct {
			X [65]bool `net:""`
		}{}, ErrMany},
		{5, ErrKind},
	} {
		_, err := Build(reflect.TypeOf(c.v))
		require.ErrorIs(t, err, c.want, "%T", c.v)
	}
}

func TestAllocs(t *testing.T) {
	l := build(t)
	src := random(rand.New(rand.NewPCG(1, 1)))
	var dst everything
	dst.Name = src.Name
	shadow := l.NewShadow()
	l.Compare(shadow, unsafe.Pointer(&src))
	buf := make([]byte, 1024)
	var w bitio.Writer
	var r bitio.Reader
	named := l.Allowed(true, true) &^ l.conditions[InitialOnly] // a string read is a string made
	require.Zero(t, testing.AllocsPerRun(100, func() {
		src.Pos.X++
		l.Compare(shadow, unsafe.Pointer(&src))
		w.Reset(buf)
		l.Write(&w, shadow, named)
		r.Reset(w.Bytes(), w.Len())
		if _, err := l.Read(&r, unsafe.Pointer(&dst)); err != nil {
			t.Error(err)
		}
	}))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{255, 255, 255, 255, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		l := build(t)
		var dst everything
		_, _ = l.Read(bitio.NewReader(b, len(b)*8), unsafe.Pointer(&dst))
	})
}
