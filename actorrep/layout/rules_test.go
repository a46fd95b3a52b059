package layout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestSteps: the nearest step, whatever the number; what can't be counted is cut or 0.
func TestSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10000 {
		step := math.Exp2(rng.Float64()*20 - 12)
		v := (rng.Float64() - 0.5) * 1e6
		require.InDelta(t, v, float64(unzigzag(Steps(v, step)))*step, step/2*(1+1e-9))
	}
	require.Zero(t, Steps(math.NaN(), 0.01))
	require.Equal(t, int64(1<<52), unzigzag(Steps(math.Inf(1), 0.01)))
	require.Equal(t, int64(-1<<52), unzigzag(Steps(math.Inf(-1), 0.01)))
	require.Equal(t, int64(1<<52), unzigzag(Steps(math.MaxFloat64, 1e-300)))
}

// TestAngles: at most half a step away around the turn, and 360 is 0.
func TestAngles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		b := uint8(8 + rng.IntN(9))
		v := (rng.Float64() - 0.5) * 5000
		got := fromAngle(Turn(v, b), b)
		require.True(t, got >= 0 && got < 360, "%v", got)
		off := math.Abs(math.Remainder(got-v, 360))
		require.LessOrEqual(t, off, 180/math.Exp2(float64(b))+1e-9, "%v in %d bits", v, b)
	}
	for _, v := range []float64{0, 360, -360, 720, 359.9999, math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.Zero(t, Turn(v, 8), "%v", v)
	}
}

// TestDeltas: any number against any other comes out as it was, small differences small, angles the shorter way.
func TestDeltas(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	buf := make([]byte, 100)
	for range 20000 {
		d := Wire{Kind: Step, N: 3, Step: 1}
		limit := uint64(1) << (1 + rng.IntN(53))
		if rng.IntN(2) == 0 {
			d = Wire{Kind: Angle, N: uint8(1 + rng.IntN(4)), Bits: uint8(8 + rng.IntN(9))}
			limit = 1 << d.Bits
		}
		var v, base, got [MaxNumbers]uint64
		for i := range d.N {
			v[i] = rng.Uint64N(limit)
			base[i] = rng.Uint64N(limit)
			if rng.IntN(2) == 0 {
				base[i] = min(limit-1, v[i]+rng.Uint64N(16))
			}
		}
		w := bitio.NewWriter(buf)
		d.writeDelta(w, v[:d.N], base[:])
		if bits := d.deltaBits(v[:d.N], base[:]); bits < 64 {
			require.Equal(t, bits, w.Len(), "as reckoned before")
		}
		r := bitio.NewReader(w.Bytes(), w.Len())
		d.readDelta(r, got[:d.N], base[:])
		require.NoError(t, r.Err())
		require.Equal(t, v, got, "%v", d)
	}
	d := Wire{Kind: Angle, N: 1, Bits: 16}
	w := bitio.NewWriter(buf)
	d.writeDelta(w, []uint64{1}, []uint64{1<<16 - 1})
	require.Equal(t, 4+3, w.Len(), "over zero is two steps, not a turn")
}

// TestExtrapolate: what moves evenly is where it was expected.
func TestExtrapolate(t *testing.T) {
	p := newPair(t, reflect.TypeFor[numbers]())
	src := p.src.Interface().(*numbers)
	var at [3][]uint64
	for i := range at {
		src.Pos.X, src.Rot[0] = float64(i)*7-7, float32(i)*50+270
		p.compare(p.l.All())
		at[i] = append([]uint64{}, p.shadow.Words...)
	}
	dst, there := make([]uint64, p.l.Words()), make([]uint64, p.l.Words())
	require.True(t, p.l.Extrapolate(dst, p.shadow, p.l.Deltas, p.l.All()&^p.l.Deltas, at[1], at[0], 1, 1))
	require.Equal(t, p.shadow.Words[:3], dst[:3])
	require.InDelta(t, p.shadow.Words[3], dst[3], 1, "50 degrees are no whole number of steps")
	p.remote.Extrapolate(there, p.l.Deltas, at[1], at[0], 1, 1)
	require.Equal(t, dst[:5], there[:5], "both ends expect the same")
}

// TestConditions compares the table with the conditions in words.
func TestConditions(t *testing.T) {
	want := func(name string, initial, owner, autonomous, replay bool) bool {
		switch name {
		case "initial":
			return initial
		case "owner":
			return owner
		case "skipowner":
			return !owner
		case "simulated":
			return !autonomous
		case "autonomous":
			return autonomous
		case "initialorowner":
			return initial || owner
		case "replay":
			return replay
		case "replayorowner":
			return replay || owner
		case "skipreplay":
			return !replay
		case "never":
			return false
		}
		return true // none, custom
	}
	names := []string{""}
	for name := range conditionNames {
		names = append(names, name)
	}
	require.Len(t, names, int(conditions))
	for _, name := range names {
		l, err := Build(reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[int](), Tag: reflect.StructTag(`net:"` + name + `"`)}}))
		require.NoError(t, err)
		for a := range audiences {
			w := want(name, a&Initial != 0, a&Owner != 0, a&Autonomous != 0, a&Replay != 0)
			require.Equal(t, w, l.Allowed(a) == 1, "%s to %04b", name, a)
		}
		require.Equal(t, name == "custom", l.Custom == 1)
	}
}

func TestTagErrors(t *testing.T) {
	for _, c := range []struct {
		v    any
		want error
		text string
	}{
		{struct {
			X float64 `net:"q=0"`
		}{}, ErrTag, "X"},
		{struct {
			X float64 `net:"q=inf"`
		}{}, ErrTag, "step"},
		{struct {
			X float64 `net:"q=nan"`
		}{}, ErrTag, "step"},
		{struct {
			X float64 `net:"q=1,rot=8"`
		}{}, ErrTag, "exclude"},
		{struct {
			X float64 `net:"rot=7"`
		}{}, ErrTag, "from 8 to 16"},
		{struct {
			X float64 `net:"rot=17"`
		}{}, ErrTag, "from 8 to 16"},
		{struct {
			X int `net:"fast"`
		}{}, ErrTag, "unknown option"},
		{struct {
			X int `net:"q=1"`
		}{}, ErrTag, "floats"},
		{struct {
			X int `net:"max=5"`
		}{}, ErrTag, "unsigned"},
		{struct {
			X uint8 `net:"max=none"`
		}{}, ErrTag, "max="},
		{struct {
			X uint8 `net:"max=0"`
		}{}, ErrTag, "from 1"},
		{struct {
			X uint64 `net:"max=4294967295"`
		}{}, ErrTag, "4294967294"},
		{struct {
			X string `net:"cap=65536"`
		}{}, ErrTag, "65535"},
		{struct {
			X int `net:"owner,skipowner"`
		}{}, ErrTag, "two conditions"},
		{struct {
			X struct {
				Y int `net:"owner"`
			} `net:""`
		}{}, ErrTag, "own field"},
		{struct {
			M map[int]int `net:""`
		}{}, ErrKind, "M"},
		{struct {
			P *int `net:""`
		}{}, ErrKind, "P"},
		{struct {
			P []pushed `net:""`
		}{}, ErrKind, "Vars"},
		{struct {
			X [65]bool `net:""`
		}{}, ErrMany, ""},
		{struct {
			X [33]bool `net:""`
			Y [32]bool `net:""`
		}{}, ErrMany, "65"},
		{5, ErrKind, "int"},
	} {
		_, err := Build(reflect.TypeOf(c.v))
		require.ErrorIs(t, err, c.want, "%T", c.v)
		require.ErrorContains(t, err, c.text, "%T", c.v)
	}
	_, err := BuildValue(reflect.TypeFor[struct{ V pushed }]())
	require.ErrorIs(t, err, ErrKind)
	_, err = Build(reflect.TypeFor[struct {
		A [63]bool `net:""`
		B bool     `net:""`
	}]())
	require.NoError(t, err, "64 units are as many as there may be")
}

// TestInnerTags: the parts of a struct have their own tags.
func TestInnerTags(t *testing.T) {
	l, err := Build(reflect.TypeFor[struct {
		S struct {
			Fine   float64 `net:"q=0.1"`
			Coarse float64
		} `net:"q=10,owner"`
		L []struct {
			Few uint8 `net:"max=3"`
		} `net:""`
	}]())
	require.NoError(t, err)
	require.Len(t, l.Units, 3, "a struct whose floats have different tags is no vector")
	require.InDelta(t, 0.1, l.Units[0].Step, 0)
	require.InDelta(t, 10, l.Units[1].Step, 0)
	require.Equal(t, OwnerOnly, l.Units[0].Condition)
	require.Equal(t, Max, l.Units[2].elem.Units[0].Kind)
}

// TestCaps: what is longer is cut, at both ends; a string not within a character.
func TestCaps(t *testing.T) {
	type caps struct {
		S string  `net:"cap=10"`
		B []byte  `net:"cap=4"`
		L []int64 `net:"cap=3"`
	}
	p := newPair(t, reflect.TypeFor[caps]())
	src, dst := p.src.Interface().(*caps), p.dst.Interface().(*caps)
	*src = caps{strings.Repeat("€", 5), []byte("abcdefgh"), []int64{1, 2, 3, 4, 5}}
	p.compare(p.l.All())
	for i := range p.l.Units {
		w := p.write(i, nil)
		p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), i, nil, nil, p.l.Object(p.dst.UnsafePointer()))
	}
	require.Equal(t, &caps{"€€€", []byte("abcd"), []int64{1, 2, 3}}, dst)
	src.S, src.B, src.L = "€€€€", []byte("abcd!"), []int64{1, 2, 3, 9}
	require.Zero(t, p.compare(p.l.All()), "what is cut doesn't count")

	long := []byte{0xe2, 0x82, 0xac} // and bytes that are no characters at all
	src.S = strings.Repeat(string(long[1:2]), 30)
	p.compare(p.l.All())
	require.LessOrEqual(t, p.write(0, nil).Len(), 8+80)

	w := bitio.NewWriter(make([]byte, 100)) // a peer that doesn't cut
	w.WriteIntPacked(11)
	w.WriteBytes(make([]byte, 11))
	r := bitio.NewReader(w.Bytes(), w.Len())
	p.remote.ReadUnit(r, 0, nil, nil, p.l.Object(p.dst.UnsafePointer()))
	require.ErrorIs(t, r.Err(), ErrLength)
	require.True(t, utf8.ValidString(dst.S))
}

// TestTooLarge: a value over 8 KiB goes as if it were empty, and leaves room for the others.
func TestTooLarge(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		L [][64]uint64 `net:""`
	}]())
	list := p.src.Elem().Field(0).Addr().Interface().(*[][64]uint64)
	*list = make([][64]uint64, 3)
	require.EqualValues(t, 1, p.compare(1))
	require.Greater(t, p.write(0, nil).Len(), 3*64*8)
	*list = make([][64]uint64, 1000)
	require.EqualValues(t, 1, p.compare(1))
	require.LessOrEqual(t, p.write(0, nil).Len(), 16)
}

// TestNonZero: an object that is all zero has nothing to say, any other says what isn't.
func TestNonZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for range 200 {
		typ := randomStruct(rng, 2, 1+rng.IntN(5), false)
		p := newPair(t, typ)
		p.compare(p.l.All())
		for i := range p.l.Units { // two zero bytes of a serializer of its own count as something
			if p.l.NonZero(p.shadow)>>i&1 != 0 {
				require.Equal(t, Custom, p.l.Units[i].Kind)
			}
		}
		zero := naive(p.src.Elem(), nil)
		fill(rng, p.src.Elem())
		p.compare(p.l.All())
		want := naive(p.src.Elem(), nil)
		for i := range p.l.Units {
			path := p.l.Units[i].Path
			if !reflect.DeepEqual(at(p.src.Elem(), zero, path), at(p.src.Elem(), want, path)) {
				require.NotZero(t, p.l.NonZero(p.shadow)>>i&1, "%s of %v", path, typ)
			}
		}
	}
}

// TestHash: layouts that write other bits have other hashes.
func TestHash(t *testing.T) {
	seen := map[uint32]string{}
	for _, tag := range []string{"", "q=0.1", "q=0.2", "rot=8", "rot=9"} {
		for _, typ := range []reflect.Type{reflect.TypeFor[float32](), reflect.TypeFor[[2]float32](), reflect.TypeFor[[]float32]()} {
			l, err := Build(reflect.StructOf([]reflect.StructField{{Name: "F", Type: typ, Tag: reflect.StructTag(`net:"` + tag + `"`)}}))
			require.NoError(t, err)
			what := fmt.Sprint(typ, tag)
			require.Empty(t, seen[l.Hash()], what)
			seen[l.Hash()] = what
		}
	}
}

func TestFloat(t *testing.T) {
	p := newPair(t, reflect.TypeFor[numbers]())
	*p.src.Interface().(*numbers) = numbers{Rot: [2]float32{90, 180}, HP: 5, On: true, Mana: -7, Raw: 0.5}
	p.src.Interface().(*numbers).Pos.Y = -12.34
	p.compare(p.l.All())
	for path, want := range map[string]float64{"Pos": 0, "Rot": 90, "HP": 5, "On": 1, "Mana": -7, "Raw": 0.5} {
		for i := range p.l.Units {
			if u := &p.l.Units[i]; u.Path == path {
				require.InDelta(t, want, u.Float(p.shadow.Words[u.first]), 1e-9, path)
			}
		}
	}
	require.InDelta(t, -12.34, p.l.Units[0].Float(p.shadow.Words[1]), 1e-9)
}
