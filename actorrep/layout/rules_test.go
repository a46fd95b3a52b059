package layout

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestSteps: the nearest step, whatever the number; what can't be counted doesn't fit.
func TestSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10000 {
		step := math.Exp2(rng.Float64()*20 - 12)
		v := (rng.Float64() - 0.5) * 1e6
		require.InDelta(t, v, float64(unzigzag(Steps(v, step)))*step, step/2*(1+1e-9))
	}
	require.Equal(t, int64(-1<<52-1), unzigzag(Steps(math.NaN(), 0.01)))
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
	for _, v := range []float64{0, 360, -360, 720, 359.9999} {
		require.Zero(t, Turn(v, 8), "%v", v)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.EqualValues(t, 256, Turn(v, 8), "a whole turn doesn't fit")
	}
	for range 20000 { // any float, against whole numbers without a bound
		b := uint8(8 + rng.IntN(9))
		v := math.Ldexp(rng.Float64()-0.5, rng.IntN(200)-20)
		turns := new(big.Float).SetPrec(400).SetFloat64(v / 360)
		steps, _ := turns.SetMantExp(turns, int(b)+1).Add(turns, big.NewFloat(1)).Int(nil) // twice as many, and a half
		if turns.Sign() < 0 && !turns.IsInt() {
			steps.Sub(steps, big.NewInt(1))
		}
		tie := steps.Bit(0) == 0 && turns.IsInt()
		if steps.Rsh(steps, 1); tie && steps.Bit(0) == 1 {
			steps.Sub(steps, big.NewInt(1)) // to the even one
		}
		want := steps.And(steps, big.NewInt(1<<b-1)).Uint64()
		require.Equal(t, want, Turn(v, b), "%v in %d bits", v, b)
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
		var kept [MaxNumbers]uint64
		for i := range d.N {
			kept[i] = d.integer(base[i])
		}
		w := bitio.NewWriter(buf)
		d.writeDelta(w, v[:d.N], kept[:])
		if bits := d.deltaBits(v[:d.N], kept[:]); bits < 64 {
			require.Equal(t, bits, w.Len(), "as reckoned before")
		}
		r := bitio.NewReader(w.Bytes(), w.Len())
		d.readDelta(r, got[:d.N], kept[:])
		require.NoError(t, r.Err())
		require.Equal(t, v, got, "%v", d)
	}
	d := Wire{Kind: Angle, N: 1, Bits: 16}
	w := bitio.NewWriter(buf)
	d.writeDelta(w, []uint64{1}, []uint64{(1<<16 - 1) << 48})
	require.Equal(t, 4+3, w.Len(), "over zero is two steps, not a turn")
}

// TestConditions compares the table with the conditions in words.
func TestConditions(t *testing.T) {
	want := func(name string, initial, owner, autonomous, replay, physics bool) bool {
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
		case "simulatedorphysics":
			return !autonomous || physics
		case "simulatednoreplay":
			return !autonomous && !replay
		case "simulatedorphysicsnoreplay":
			return (!autonomous || physics) && !replay
		case "never":
			return false
		}
		return true // none, custom, group=
	}
	names := []string{""}
	for name := range conditionNames {
		names = append(names, name)
	}
	names = append(names, "group=red")
	require.Len(t, names, int(conditions))
	for _, name := range names {
		l, err := Build(reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[int](), Tag: reflect.StructTag(`net:"` + name + `"`)}}))
		require.NoError(t, err)
		for a := range audiences {
			w := want(name, a&Initial != 0, a&Owner != 0, a&Autonomous != 0, a&Replay != 0, a&Physics != 0)
			require.Equal(t, w, l.Allowed(a) == 1, "%s to %05b", name, a)
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
			X [4]float64 `net:"quat=7"`
		}{}, ErrTag, "from 8 to 16"},
		{struct {
			X [4]float64 `net:"quat=17"`
		}{}, ErrTag, "from 8 to 16"},
		{struct {
			X [3]float64 `net:"quat=12"`
		}{}, ErrTag, "four floats"},
		{struct {
			X int `net:"quat=12"`
		}{}, ErrTag, "four floats"},
		{struct {
			X [4]float64 `net:"quat=12,q=1"`
		}{}, ErrTag, "excludes"},
		{struct {
			X int `net:"fast"`
		}{}, ErrTag, "unknown option"},
		{struct {
			X string `net:"max=20"`
		}{}, ErrTag, "cap= bounds a text"},
		{struct {
			X time.Time `net:"q=0.1"`
		}{}, ErrTag, "are for numbers"},
		{struct {
			X picky `net:"rot=12"`
		}{}, ErrTag, "are for numbers"},
		{struct {
			X int `net:"q=1"`
		}{}, ErrTag, "floats"},
		{struct {
			X int `net:"max=5"`
		}{}, ErrTag, "unsigned"},
		{struct {
			X float32 `net:"max=5"`
		}{}, ErrTag, "unsigned"},
		{struct {
			X uint8 `net:"max=256"`
		}{}, ErrTag, "more than a uint8 holds"},
		{struct {
			X uint16 `net:"max=65536"`
		}{}, ErrTag, "more than a uint16 holds"},
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
		}{}, ErrTag, "skipowner is the second"},
		{struct {
			X struct {
				Y int `net:"owner"`
			} `net:""`
		}{}, ErrTag, "own field"},
		{struct {
			*tagged
			Y int `net:""`
		}{}, ErrKind, "embedded in"},
		{struct {
			M map[int]int `net:""`
		}{}, ErrKind, "M is a map[int]int; an actor's field can be a fastarray.Map"},
		{struct {
			V marked `net:""`
		}{}, ErrKind, "within a Var"},
		{struct{ V pushed }{}, ErrTag, "V has none"},
		{struct{ L toyList }{}, ErrTag, "L has none"},
		{struct {
			P *int `net:""`
		}{}, ErrKind, "P"},
		{struct {
			P []pushed `net:""`
		}{}, ErrKind, "Vars"},
		{struct {
			P *selfish `net:""`
		}{}, ErrKind, "contains itself"},
		{struct {
			P struct{ L []selfish } `net:""`
		}{}, ErrKind, "contains itself"},
		{struct {
			M struct {
				N uint8
				M sync.Mutex
			} `net:""`
		}{}, ErrKind, "one process"},
		{struct {
			N atomic.Int32 `net:""`
		}{}, ErrKind, "one process"},
		{struct {
			L []struct{ S [65]string } `net:""`
		}{}, ErrMany, "L[]"},
		{struct {
			P *struct{ S [65]string } `net:""`
		}{}, ErrMany, "P"},
		{struct {
			X [65]string `net:""`
		}{}, ErrMany, ""},
		{struct {
			X [1025]bool `net:""`
		}{}, ErrMany, ""},
		{struct {
			X [513]bool `net:""`
			Y [512]bool `net:""`
		}{}, ErrMany, "1025"},
		{5, ErrKind, "int"},
	} {
		_, err := Build(reflect.TypeOf(c.v))
		require.ErrorIs(t, err, c.want, "%T", c.v)
		require.ErrorContains(t, err, c.text, "%T", c.v)
	}
	for tag, meant := range map[reflect.StructTag]bool{`Net:"q=1"`: true, `net: "q=1"`: true, `net "q=1"`: true, `net:q=1`: true, `net`: true, `json:"x" NET:""`: true,
		`json:"net"`: false, `nets:""`: false, `json:"net: x"`: false, `json`: false, `a b`: false, ``: false,
		`json"x"`: false, `"x"`: false, `json:"a" "b"`: false, "json:\"x\"\tNet:\"\"": true, `json:"x",net:""`: true} {
		own := reflect.StructField{Name: "Y", Type: reflect.TypeFor[int](), Tag: `net:""`}
		typ := reflect.StructOf([]reflect.StructField{{Name: "X", Type: reflect.TypeFor[float64](), Tag: tag}, own})
		in := reflect.StructOf([]reflect.StructField{{Name: "In", Type: typ, Tag: `net:""`}})
		vector := reflect.StructOf([]reflect.StructField{{Name: "In", Tag: `net:""`, Type: reflect.StructOf([]reflect.StructField{{Name: "X", Type: reflect.TypeFor[float64](), Tag: tag}, {Name: "Y", Type: reflect.TypeFor[float64]()}})}})
		for _, build := range []func() (*Layout, error){func() (*Layout, error) { return Build(typ) }, func() (*Layout, error) { return Build(in) }, func() (*Layout, error) { return Build(vector) }, func() (*Layout, error) { return BuildValue(typ) }} {
			if _, err := build(); meant {
				require.ErrorIs(t, err, ErrTag, "%s", tag)
				require.ErrorContains(t, err, "isn't a net tag to Go")
			} else {
				require.NoError(t, err, "%s", tag)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[struct{ V pushed }](), reflect.TypeFor[chan int](), reflect.TypeFor[struct{ C chan int }](), reflect.TypeFor[pushed]()} {
		_, err := BuildValue(typ)
		require.ErrorIs(t, err, ErrKind, "%v", typ)
	}
	_, err := BuildValue(reflect.TypeFor[struct {
		A int `net:"nonsense"`
	}]())
	require.ErrorIs(t, err, ErrTag)
	_, err = Build(reflect.TypeFor[struct {
		A uint8  `net:"max=255"`
		B uint16 `net:"max=65535"`
	}]())
	require.NoError(t, err, "as much as they hold")
	_, err = Build(reflect.TypeFor[struct {
		A [63]bool `net:""`
		B bool     `net:""`
	}]())
	require.NoError(t, err, "64 units are as many as there may be")
	_, err = Build(reflect.TypeFor[struct {
		*pointed
		*knot
		A int `net:""`
	}]())
	require.NoError(t, err)
	l, err := Build(reflect.TypeFor[struct {
		tagged
		P *tagged
		A int `net:""`
	}]())
	require.NoError(t, err, "a pointer that isn't embedded stays here")
	require.Len(t, l.Units, 2)
	_, err = BuildValue(reflect.TypeFor[struct{}]())
	require.NoError(t, err, "a struct without fields hides none")
	_, err = Build(reflect.TypeFor[struct {
		*outer
		A int `net:""`
	}]())
	require.ErrorIs(t, err, ErrKind, "embedded as a pointer, with fields of a struct that it embeds")
	_, err = Build(reflect.TypeFor[struct {
		A marks[marks[int]] `net:""`
	}]())
	require.ErrorIs(t, err, ErrKind)
	require.ErrorContains(t, err, "a Var within a Var")
}

// outer embeds a struct with a tag; knot embeds itself.
type (
	outer        struct{ tagged }
	knot         struct{ *knot }
	marks[T any] struct{ V T }
)

func (*marks[T]) PushesNet() {}

// TestPathMask: a field's units, and those of a part by its path.
func TestPathMask(t *testing.T) {
	l, err := Build(reflect.TypeFor[struct {
		A struct{ N, M string } `net:""`
		B [2]string             `net:""`
		C [9]float64            `net:""`
	}]())
	require.NoError(t, err)
	for path, want := range map[string]Mask{"A": 0b11, "A.N": 1, "A.M": 2, "B": 0b1100, "B[1]": 0b1000, "C": 1 << 4, "C[8]": 1 << 4, "": 0, "a": 0, "A.": 0, "A.O": 0, "B[2]": 0, "C[": 0} {
		require.Equal(t, want, l.PathMask(path), path)
	}
	fields := []reflect.StructField{}
	for i := range 40 { // so many that the numbers among them share units
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("B", i), Type: reflect.TypeFor[bool](), Tag: `net:""`}, reflect.StructField{Name: fmt.Sprint("S", i), Type: reflect.TypeFor[string](), Tag: `net:""`})
	}
	l, err = Build(reflect.StructOf(fields))
	require.NoError(t, err)
	for _, f := range fields {
		require.NotZero(t, l.FieldMask(f.Name))
		require.Equal(t, l.FieldMask(f.Name), l.PathMask(f.Name), f.Name)
	}
	for _, u := range l.Units {
		require.NotZero(t, l.PathMask(u.Path), u.Path)
	}
}

// pointed is embedded by pointer, and is no struct.
type pointed int

// tagged is embedded.
type tagged struct {
	X int `net:""`
}

// selfish contains itself, behind a pointer.
type selfish struct {
	N    uint8
	Next *selfish
}

// TestFloatsTogether: two to four floats are one unit, one or five are a unit each; bytes of an array take 8 bits.
func TestFloatsTogether(t *testing.T) {
	for n, units := range map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 5, 6: 6} {
		p := newPair(t, reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.ArrayOf(n, reflect.TypeFor[float32]()), Tag: `net:"q=0.5"`}}))
		require.Len(t, p.l.Units, units)
		for i := range n {
			p.src.Elem().Field(0).Index(i).SetFloat(float64(i + 1))
		}
		p.compare(p.l.All())
		for i := range units {
			w := p.write(i, nil)
			p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), i, make([]uint64, MaxNumbers), nil, p.l.Object(p.dst.UnsafePointer()))
		}
		require.Equal(t, p.src.Elem().Interface(), p.dst.Elem().Interface())
	}
	l, err := BuildValue(reflect.TypeFor[[16]byte]())
	require.NoError(t, err)
	w := bitio.NewWriter(make([]byte, 100))
	v := [16]byte{15: 255}
	l.WriteValue(w, unsafe.Pointer(&v))
	require.Equal(t, 128, w.Len())
}

// TestConcurrent: what runs code of the game, or needs memory of the Layout, when it is compared isn't compared on several cores.
func TestConcurrent(t *testing.T) {
	for want, types := range map[bool][]reflect.Type{
		true:  {reflect.TypeFor[[3]float32](), reflect.TypeFor[uint8](), reflect.TypeFor[string](), reflect.TypeFor[pushed]()},
		false: {reflect.TypeFor[[]byte](), reflect.TypeFor[[]int](), reflect.TypeFor[own](), reflect.TypeFor[*item](), reflect.TypeFor[toyList](), reflect.TypeFor[time.Time](), reflect.TypeFor[[70]bool]()},
	} {
		for _, typ := range types {
			l, err := Build(reflect.StructOf([]reflect.StructField{{Name: "N", Type: reflect.TypeFor[uint8](), Tag: `net:""`}, {Name: "F", Type: typ, Tag: `net:""`}, {Name: "S", Type: reflect.TypeFor[string](), Tag: `net:""`}}))
			require.NoError(t, err)
			require.Equal(t, want, l.Concurrent(), "%v", typ)
		}
	}
}

// TestVarsMarkTheirUnits: a value that marks itself marks all its units and no others.
func TestVarsMarkTheirUnits(t *testing.T) {
	l, err := Build(reflect.TypeFor[struct {
		A uint8     `net:""`
		V [3]pushed `net:""`
		B string    `net:""`
		W pushed    `net:""`
	}]())
	require.NoError(t, err)
	require.Len(t, l.Vars, 4)
	all := Mask(0)
	for _, v := range l.Vars {
		require.NotZero(t, v.Mask)
		require.Zero(t, all&v.Mask)
		all |= v.Mask
	}
	require.Equal(t, l.FieldMask("V")|l.FieldMask("W"), all)
	require.Equal(t, l.Pushed, all)
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

// TestFitsOrIsTold: what is at its bound goes whole; what is over it leaves the last value there, and is told.
func TestFitsOrIsTold(t *testing.T) {
	type caps struct {
		S string     `net:"cap=10"`
		B []byte     `net:"cap=4"`
		L []int64    `net:"cap=3"`
		D []string   `net:"cap=3"`
		M uint8      `net:"max=100"`
		P [2]float64 `net:"q=0.5"`
		A float64    `net:"rot=8"`
	}
	for _, c := range []struct {
		name     string
		unit     int
		fit, not func(v *caps)
		says     string
	}{
		{"text over its cap", 0, func(v *caps) { v.S = strings.Repeat("x", 10) }, func(v *caps) { v.S = strings.Repeat("x", 11) }, "11 bytes of text, the most are 10"},
		{"text that isn't UTF-8", 0, func(v *caps) { v.S = "é" }, func(v *caps) { v.S = "é"[:1] }, "UTF-8"},
		{"bytes", 1, func(v *caps) { v.B = make([]byte, 4) }, func(v *caps) { v.B = make([]byte, 5) }, "5 elements, the most are 4"},
		{"list", 2, func(v *caps) { v.L = make([]int64, 3) }, func(v *caps) { v.L = make([]int64, 4) }, "4 elements, the most are 3"},
		{"text in a list", 3, func(v *caps) { v.D = []string{"", "y"} }, func(v *caps) { v.D = []string{"", "\xff"} }, "element 1"},
		{"number over max=", 4, func(v *caps) { v.M = 100 }, func(v *caps) { v.M = 101 }, "101 is more than max=100"},
		{"infinity", 5, func(v *caps) { v.P[1] = 1e9 }, func(v *caps) { v.P[1] = math.Inf(-1) }, "-Inf isn't a finite number"},
		{"far away", 5, func(v *caps) { v.P[0] = -1e15 }, func(v *caps) { v.P[0] = -1e16 }, "-1e+16 is more than 2^52 steps of q=0.5"},
		{"no number", 5, func(v *caps) { v.P[1] = 0 }, func(v *caps) { v.P[1] = math.NaN() }, "NaN isn't a finite number"},
		{"angle that is none", 6, func(v *caps) { v.A = -90 }, func(v *caps) { v.A = math.NaN() }, "NaN isn't a finite number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, reflect.TypeFor[caps]())
			src, dst := p.src.Interface().(*caps), p.dst.Interface().(*caps)
			show := func() {
				p.compare(p.l.All())
				w := p.write(c.unit, nil)
				r := bitio.NewReader(w.Bytes(), w.Len())
				p.remote.ReadUnit(r, c.unit, make([]uint64, MaxNumbers), nil, p.l.Object(p.dst.UnsafePointer()))
				require.NoError(t, r.Err())
			}
			c.fit(src)
			show()
			require.Zero(t, p.shadow.Unfit)
			require.NoError(t, p.l.Unfit(p.src.UnsafePointer(), c.unit))
			want := *dst
			if c.unit < 4 {
				require.Equal(t, reflect.ValueOf(*src).Field(c.unit).Interface(), reflect.ValueOf(want).Field(c.unit).Interface())
			}
			c.not(src)
			show()
			require.Equal(t, Mask(1)<<c.unit, p.shadow.Unfit)
			require.ErrorIs(t, p.l.Unfit(p.src.UnsafePointer(), c.unit), ErrUnfit)
			require.ErrorContains(t, p.l.Unfit(p.src.UnsafePointer(), c.unit), c.says)
			require.ErrorIs(t, p.l.Check(p.src.UnsafePointer(), p.l.All()), ErrUnfit)
			if c.unit < 4 {
				require.Equal(t, want, *dst, "the last value that fitted stays")
			}
			c.fit(src)
			show()
			require.Zero(t, p.shadow.Unfit, "it fits again")
		})
	}
}

// TestLongText: a text from a peer with a larger cap, or of bytes that are no text, is told, and what follows is read.
func TestLongText(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		S string `net:"cap=10"`
	}]())
	for _, b := range [][]byte{make([]byte, 11), {0xff}} {
		w := bitio.NewWriter(make([]byte, 100))
		w.WriteIntPacked(uint32(len(b)))
		w.WriteBytes(b)
		w.WriteUint8(7)
		r := bitio.NewReader(w.Bytes(), w.Len())
		p.remote.ReadUnit(r, 0, nil, nil, p.l.Object(p.dst.UnsafePointer()))
		require.Error(t, p.remote.Unread)
		require.Empty(t, p.dst.Elem().Field(0).String())
		require.EqualValues(t, 7, r.ReadUint8())
	}
}

// TestTooLarge: of a value over 8 KiB the last that fitted stays, and that is told.
func TestTooLarge(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		L [][64]uint64 `net:""`
	}]())
	list := p.src.Elem().Field(0).Addr().Interface().(*[][64]uint64)
	*list = make([][64]uint64, 3)
	require.EqualValues(t, 1, p.compare(1))
	before := p.write(0, nil).Len()
	require.Greater(t, before, 3*64*8)
	*list = make([][64]uint64, 1000)
	require.Zero(t, p.compare(1))
	require.Equal(t, before, p.write(0, nil).Len())
	require.EqualValues(t, 1, p.shadow.Unfit)
	require.ErrorIs(t, p.l.Unfit(p.src.UnsafePointer(), 0), ErrUnfit)
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
			if p.shadow.Unfit>>i&1 == 0 && !reflect.DeepEqual(at(p.src.Elem(), zero, path), at(p.src.Elem(), want, path)) {
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

// formed has a serializer of its own, and inside something else than another of its size.
type formed struct{ own }

func (*formed) NetForm() (uint32, error) { return 99, nil }

// broken doesn't know its inside.
type broken struct{ own }

func (*broken) NetForm() (uint32, error) { return 0, ErrKind }

// formedList and brokenList are the same for fast arrays.
type (
	formedList struct{ toyList }
	brokenList struct{ toyList }
)

func (*formedList) NetForm() (uint32, error) { return 98, nil }

func (*brokenList) NetForm() (uint32, error) { return 0, ErrKind }

// TestForms: what is inside of a value with a serializer of its own is part of a layout's hash, and its error is Build's.
func TestForms(t *testing.T) {
	field := func(typ reflect.Type) (*Layout, error) {
		return Build(reflect.StructOf([]reflect.StructField{{Name: "F", Type: typ, Tag: `net:""`}}))
	}
	plain, err := field(reflect.TypeFor[own]())
	require.NoError(t, err)
	other, err := field(reflect.TypeFor[formed]())
	require.NoError(t, err)
	require.EqualValues(t, 99, other.Units[0].Form())
	require.NotEqual(t, plain.Hash(), other.Hash())
	_, err = field(reflect.TypeFor[broken]())
	require.ErrorIs(t, err, ErrKind)
	list, err := field(reflect.TypeFor[toyList]())
	require.NoError(t, err)
	other, err = field(reflect.TypeFor[formedList]())
	require.NoError(t, err)
	require.EqualValues(t, 98, other.Units[0].Form())
	require.NotEqual(t, list.Hash(), other.Hash(), "elements of another form")
	_, err = field(reflect.TypeFor[brokenList]())
	require.ErrorIs(t, err, ErrKind)
}
