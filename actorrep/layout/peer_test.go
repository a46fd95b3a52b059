package layout

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// readerOf is a reader of what write writes.
func readerOf(write func(w *bitio.Writer)) *bitio.Reader {
	w := bitio.NewWriter(make([]byte, 1<<17))
	write(w)
	return bitio.NewReader(w.Bytes(), w.Len())
}

// allocated is the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestObjectsOfOtherClasses: values are never written over those of another class, whatever the peer's schema says.
func TestObjectsOfOtherClasses(t *testing.T) {
	type one struct {
		A uint64 `net:""`
		S string `net:""`
	}
	type other struct {
		A uint64 `net:""`
		S string `net:""`
	}
	p := newPair(t, reflect.TypeFor[one]())
	l, err := Build(reflect.TypeFor[other]())
	require.NoError(t, err)
	*p.src.Interface().(*one) = one{7, "text"}
	p.compare(p.l.All())
	var dst other
	for i := range p.l.Units {
		w := p.write(i, nil)
		r := bitio.NewReader(w.Bytes(), w.Len())
		require.False(t, p.remote.ReadUnit(r, i, make([]uint64, MaxNumbers), nil, l.Object(unsafe.Pointer(&dst))))
		require.ErrorIs(t, r.Err(), ErrObject)
	}
	require.Zero(t, dst)
}

// TestNothingChangesWithoutAnObject: nor on an error.
func TestNothingChangesWithoutAnObject(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		A uint64 `net:""`
		S string `net:""`
		B []byte `net:""`
	}]())
	p.fill(rand.New(rand.NewPCG(1, 21)), p.src.Elem().Field(0))
	p.src.Elem().Field(1).SetString("text")
	p.src.Elem().Field(2).SetBytes([]byte{1})
	p.compare(p.l.All())
	for i := range p.l.Units {
		w := p.write(i, nil)
		v := make([]uint64, MaxNumbers)
		require.False(t, p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), i, v, nil, Object{}), "%d", i)
		require.False(t, p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()-1), i, v, nil, Object{}), "%d", i)
		if i > 0 {
			require.False(t, p.remote.ReadUnit(bitio.NewReader(w.Bytes(), 5), i, v, nil, p.l.Object(p.dst.UnsafePointer())), "%d", i)
		}
		require.True(t, p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), i, v, nil, p.l.Object(p.dst.UnsafePointer())), "%d", i)
	}
	w := p.write(1, nil)
	require.False(t, p.remote.ReadUnit(bitio.NewReader(w.Bytes(), w.Len()), 1, nil, nil, p.l.Object(p.dst.UnsafePointer())), "the same text")
}

// TestLengthsThatLie: a length is worth no memory before what it counts is there, with an object or without, and nothing is set then.
func TestLengthsThatLie(t *testing.T) {
	type value struct {
		S string   `net:"cap=60000"`
		B []byte   `net:"cap=60000"`
		L []uint64 `net:"cap=60000"`
	}
	p := newPair(t, reflect.TypeFor[value]())
	dst := p.dst.Interface().(*value)
	for _, n := range []uint32{60_001, math.MaxUint32, 50_000} {
		for unit := range 3 {
			for _, o := range []Object{{}, p.l.Object(p.dst.UnsafePointer())} {
				r := readerOf(func(w *bitio.Writer) {
					if unit > 0 {
						w.WriteIntPacked(8 * 20)
					}
					w.WriteIntPacked(n)
					w.WriteBytes(make([]byte, 20))
				})
				require.Less(t, allocated(func() { p.remote.ReadUnit(r, unit, nil, nil, o) }), uint64(10_000), "%d, %d", unit, n)
				if unit == 0 || o.ptr != nil {
					require.Error(t, errors.Join(r.Err(), p.remote.Unread), "%d, %d", unit, n)
				}
				require.Zero(t, *dst)
			}
			if unit > 0 { // the length of the whole
				r := readerOf(func(w *bitio.Writer) { w.WriteIntPacked(n); w.WriteIntPacked(1) })
				p.remote.ReadUnit(r, unit, nil, nil, Object{})
				require.ErrorIs(t, r.Err(), ErrLength)
			}
		}
		r := readerOf(func(w *bitio.Writer) { w.WriteIntPacked(n) })
		require.Less(t, allocated(func() { require.Empty(t, ReadText(r, 60_000)) }), uint64(10_000))
		require.Error(t, r.Err())

		l, err := BuildValue(reflect.TypeFor[value]())
		require.NoError(t, err)
		for _, mem := range []*Memory{nil, new(Memory)} {
			r := readerOf(func(w *bitio.Writer) { w.WriteIntPacked(n) })
			require.Less(t, allocated(func() { l.ReadValue(r, p.dst.UnsafePointer(), mem) }), uint64(10_000))
			require.Error(t, r.Err())
		}
	}
}

// TestElementsThatLie: a slice gets no memory for more elements than the rest has room for, when each takes the least that it can: all numbers of the arrays in it,
// too.
func TestElementsThatLie(t *testing.T) {
	type cell struct {
		Item    uint8
		Numbers [100]uint64
		Flags   [40]bool
	}
	type whole struct {
		From  netip.Addr
		Cells [2]cell
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[[]cell](), reflect.TypeFor[[]whole](), reflect.TypeFor[[]netip.Addr](), reflect.TypeFor[[]time.Time]()} {
		l, err := BuildValue(typ)
		require.NoError(t, err)
		size := func(n int) int {
			v := reflect.New(typ)
			v.Elem().Set(reflect.MakeSlice(typ, n, n))
			w := bitio.NewWriter(make([]byte, 1<<16))
			l.WriteValue(w, v.UnsafePointer())
			require.NoError(t, w.Err())
			return w.Len()
		}
		const n = 250
		each := size(3) - size(2)
		data := make([]byte, (n*each+7)/8+2)
		w := bitio.NewWriter(data)
		w.WriteIntPacked(n)
		for _, lacks := range []int{1, 0} {
			v := reflect.New(typ)
			r := bitio.NewReader(data, w.Len()+n*each-lacks)
			used := allocated(func() { l.ReadValue(r, v.UnsafePointer(), nil) })
			if lacks == 0 {
				require.NoError(t, r.Err(), "%v", typ)
				require.Equal(t, n, v.Elem().Len(), "%v", typ)
				continue
			}
			require.ErrorIs(t, r.Err(), ErrLength, "%v", typ)
			require.Less(t, used, uint64(2000), "%v", typ)
			require.Zero(t, v.Elem().Len(), "%v", typ)
		}
	}
}

// TestTextsThatAreNone leave what was there.
func TestTextsThatAreNone(t *testing.T) {
	l, err := BuildValue(reflect.TypeFor[struct{ S string }]())
	require.NoError(t, err)
	for _, mem := range []*Memory{nil, new(Memory)} {
		v := struct{ S string }{"before"}
		r := readerOf(func(w *bitio.Writer) { w.WriteIntPacked(2); w.WriteBytes([]byte{'x', 0xff}) })
		l.ReadValue(r, unsafe.Pointer(&v), mem)
		require.ErrorIs(t, r.Err(), ErrUnfit)
		require.Equal(t, "before", v.S)
	}
	for _, n := range []int{0, 1, 63, 64, 65, 1000} {
		text := strings.Repeat("x", n)
		var v struct{ S string }
		l.ReadValue(readerOf(func(w *bitio.Writer) { WriteText(w, text) }), unsafe.Pointer(&v), nil)
		require.Equal(t, text, v.S)
	}
}

// TestListsWithinLists: each has its own elements, also in memory that is used again; and what is as long as before is read into the same memory.
func TestListsWithinLists(t *testing.T) {
	type element struct {
		S []uint16
		T string
	}
	type value struct {
		L []element
		N []uint32
	}
	l, err := BuildValue(reflect.TypeFor[value]())
	require.NoError(t, err)
	var mem Memory
	for range 3 {
		for _, m := range []*Memory{nil, &mem} {
			want := value{L: []element{{[]uint16{1, 2}, "one"}, {[]uint16{3, 4}, "two"}, {[]uint16{5, 6}, "three"}}, N: []uint32{7, 8}}
			var got value
			l.ReadValue(readerOf(func(w *bitio.Writer) { l.WriteValue(w, unsafe.Pointer(&want)) }), unsafe.Pointer(&got), m)
			require.Equal(t, want, got)
			mem.Keep()
		}
	}
	flat, err := BuildValue(reflect.TypeFor[struct{ N []uint32 }]())
	require.NoError(t, err)
	v := struct{ N []uint32 }{make([]uint32, 5)}
	w := bitio.NewWriter(make([]byte, 100))
	flat.WriteValue(w, unsafe.Pointer(&v))
	var r bitio.Reader
	var lent struct{ N []uint32 }
	mem = Memory{} // one for each layout
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Reset(w.Bytes(), w.Len())
		flat.ReadValue(&r, unsafe.Pointer(&v), nil)
		r.Reset(w.Bytes(), w.Len())
		lent.N = nil
		flat.ReadValue(&r, unsafe.Pointer(&lent), &mem)
		mem.Keep()
	}))
}

// TestBodiesThatEndEarly: what is in the length of a unit is all that it reads; too little is told, and what follows is read.
func TestBodiesThatEndEarly(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		O own `net:""`
	}]())
	r := readerOf(func(w *bitio.Writer) { w.WriteIntPacked(8); w.WriteUint8(1); w.WriteUint8(2) })
	p.remote.ReadUnit(r, 0, nil, nil, p.l.Object(p.dst.UnsafePointer()))
	require.Error(t, p.remote.Unread)
	require.NoError(t, r.Err())
	require.EqualValues(t, 2, r.ReadUint8())
}

// TestSaturationIsTold: a number that our field can't hold is told, one at its bounds isn't, nor what isn't an integer.
func TestSaturationIsTold(t *testing.T) {
	there := newPair(t, reflect.TypeFor[struct {
		A int64      `net:""`
		B uint64     `net:""`
		C uint16     `net:"max=60000"`
		Q [4]float64 `net:"quat=12"`
	}]())
	l, err := Build(reflect.TypeFor[struct {
		A int8       `net:""`
		B uint8      `net:""`
		C uint8      `net:"max=250"`
		Q [4]float32 `net:"quat=9"`
	}]())
	require.NoError(t, err)
	m := there.schema(there.l)
	require.NoError(t, m.Match(l))
	dst := reflect.New(l.Type)
	for _, c := range []struct {
		unit  int
		v     uint64
		fits  bool
		isNow any
	}{
		{0, zigzag(127), true, int8(127)}, {0, zigzag(128), false, int8(127)}, {0, zigzag(-128), true, int8(-128)}, {0, zigzag(-129), false, int8(-128)},
		{1, 255, true, uint8(255)}, {1, 256, false, uint8(255)}, {1, math.MaxUint64, false, uint8(255)},
		{2, 250, true, uint8(250)}, {2, 251, false, uint8(250)},
		{3, 0, true, nil},
	} {
		m.Clamped = false
		u := &m.Units[c.unit]
		v := []uint64{c.v, 0, 0, 0}
		if u.Kind == Quat {
			v[0], v[1], v[2], v[3] = Quaternion(0, 0, 0, 1, u.Bits)
		}
		r := readerOf(func(w *bitio.Writer) { u.write(w, v[:u.N]) })
		m.ReadUnit(r, c.unit, make([]uint64, MaxNumbers), nil, l.Object(dst.UnsafePointer()))
		require.NoError(t, r.Err())
		require.Equal(t, !c.fits, m.Clamped, "%+v", c)
		if c.isNow != nil {
			require.Equal(t, c.isNow, dst.Elem().Field(c.unit).Interface(), "%+v", c)
		}
	}
}

// TestNoNumberIsZero: steps that stand for no number become 0, the largest stay numbers.
func TestNoNumberIsZero(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		X float64 `net:"q=0.5"`
	}]())
	for n, want := range map[int64]float64{-stepLimit - 1: 0, -stepLimit: -stepLimit / 2, stepLimit: stepLimit / 2} {
		p.dst.Elem().Field(0).SetFloat(5)
		u := &p.remote.Units[0]
		r := readerOf(func(w *bitio.Writer) { u.write(w, []uint64{zigzag(n)}) })
		p.remote.ReadUnit(r, 0, make([]uint64, MaxNumbers), nil, p.l.Object(p.dst.UnsafePointer()))
		require.NoError(t, r.Err())
		require.InDelta(t, want, p.dst.Elem().Field(0).Float(), 0)
	}
	for x, fits := range map[float64]bool{math.Inf(1): false, stepLimit / 2: false, (stepLimit - 1) / 2.0: true, -stepLimit / 2: false, -(stepLimit - 1) / 2.0: true} {
		p.src.Elem().Field(0).SetFloat(x)
		err := p.l.Check(p.src.UnsafePointer(), 1)
		require.Equal(t, fits, err == nil, "%v", x)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "X: "), "%v", err)
		}
	}
}

// TestLongTextsFit: a text may be longer than what else isn't a number.
func TestLongTextsFit(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		S string `net:"cap=60000"`
	}]())
	p.src.Elem().Field(0).SetString(strings.Repeat("x", 5*maxBlob))
	require.NoError(t, p.l.Unfit(p.src.UnsafePointer(), 0))
	p.compare(1)
	require.Zero(t, p.shadow.Unfit)
}

// TestReferring: the units that lead to references.
func TestReferring(t *testing.T) {
	l, err := Build(reflect.TypeFor[struct {
		A netguid.GUID   `net:""`
		B []netguid.GUID `net:""`
		C []uint32       `net:""`
		D uint32         `net:""`
	}]())
	require.NoError(t, err)
	for i, want := range []bool{true, true, false, false} {
		require.Equal(t, want, l.Units[i].Refers(), "%d", i)
	}
	require.EqualValues(t, 3, l.Referring)
	p := newPair(t, reflect.TypeFor[struct {
		A netguid.GUID `net:""`
	}]())
	require.EqualValues(t, 1, p.remote.Refs)
	none, err := Build(reflect.TypeFor[struct {
		B uint32 `net:""`
	}]())
	require.NoError(t, err)
	require.NoError(t, p.remote.Match(none))
	require.Zero(t, p.remote.Refs, "matched anew")
}

// TestLeastSizes: no unit within an element takes less than what lengths are checked against.
func TestLeastSizes(t *testing.T) {
	for _, d := range []Wire{{Kind: Bool, N: 1}, {Kind: Int, N: 1}, {Kind: Uint, N: 1}, {Kind: Max, N: 1, Max: 1000}, {Kind: Max, N: 1, Max: 1}, {Kind: Step, N: 3, Step: 1},
		{Kind: Angle, N: 2, Bits: 9}, {Kind: Quat, N: 4, Bits: 10}, {Kind: Float32, N: 4}, {Kind: Float64, N: 2}, {Kind: Ref, N: 1}} {
		v := make([]uint64, d.N)
		switch d.Kind {
		case Quat:
			v[0], v[1], v[2], v[3] = Quaternion(0, 0, 0, 1, d.Bits)
		case Max:
			v[0] = min(511, uint64(d.Max)) // larger and smaller ones take a bit more
		}
		w := bitio.NewWriter(make([]byte, 100))
		d.write(w, v)
		require.Equal(t, w.Len(), d.minBits()+b2i(d.Kind == Max && d.Max == 1), "%v", d)
	}
	for n, want := range []int{0, 1, 1, 1, 2} {
		require.Equal(t, want, (&Wire{N: uint8(n)}).packs())
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unitText writes a unit of a schema as a peer could.
func unitText(w *bitio.Writer, kind Kind, shared int, path string, same bool, wire Wire) {
	w.WriteBits(uint64(kind), kindBits)
	w.WriteBits(uint64(shared), 8)
	WriteText(w, path)
	if w.WriteBool(same); same {
		return
	}
	w.WriteBits(uint64(wire.N), 3)
	w.WriteBits(uint64(wire.Bits), 5)
	w.WriteIntPacked(wire.Max)
	if kind == Step {
		w.WriteFloat64(wire.Step)
	}
	if (&Wire{Kind: kind}).hasForm() {
		w.WriteUint32(1)
	}
}

// TestSchemasThatLie: names that are too long or there twice, more text than a class has, a unit "as the one before" that can't be, and groups of what
// no group holds are refused.
func TestSchemasThatLie(t *testing.T) {
	one := Wire{N: 1}
	long := strings.Repeat("x", 250)
	for name, c := range map[string]struct {
		fine  bool
		units int
		write func(w *bitio.Writer)
	}{
		"longest name": {true, 1, func(w *bitio.Writer) { unitText(w, Bool, 0, strings.Repeat("x", MaxPath), false, one) }},
		"longer name":  {false, 1, func(w *bitio.Writer) { unitText(w, Bool, 0, strings.Repeat("x", MaxPath+1), false, one) }},
		"longest with what is shared": {true, 2, func(w *bitio.Writer) {
			unitText(w, Bool, 0, long, false, one)
			unitText(w, Bool, 250, "yyyyyy", true, one)
		}},
		"longer with what is shared": {false, 2, func(w *bitio.Writer) {
			unitText(w, Bool, 0, long, false, one)
			unitText(w, Bool, 250, "yyyyyyy", true, one)
		}},
		"twice": {false, 2, func(w *bitio.Writer) {
			unitText(w, Bool, 0, "A", false, one)
			unitText(w, Bool, 1, "", true, one)
		}},
		"as before, of another kind": {false, 2, func(w *bitio.Writer) {
			unitText(w, Bool, 0, "A", false, one)
			unitText(w, Int, 0, "B", true, one)
		}},
		"as before, with a form": {false, 2, func(w *bitio.Writer) {
			unitText(w, Custom, 0, "A", false, Wire{})
			unitText(w, Custom, 0, "B", true, Wire{})
		}},
		"64 units": {true, 64, func(w *bitio.Writer) {
			for i := range 64 {
				unitText(w, Bool, 0, fmt.Sprint(i), i > 0, one)
			}
		}},
		"a group": {true, 1, func(w *bitio.Writer) {
			w.WriteBits(uint64(Group), kindBits)
			w.WriteIntPacked(2)
			unitText(w, Bool, 0, "A", false, one)
			unitText(w, Bool, 0, "B", true, one)
		}},
		"a group of nothing": {false, 1, func(w *bitio.Writer) { w.WriteBits(uint64(Group), kindBits); w.WriteIntPacked(0) }},
		"a group of a group": {false, 1, func(w *bitio.Writer) {
			w.WriteBits(uint64(Group), kindBits)
			w.WriteIntPacked(1)
			w.WriteBits(uint64(Group), kindBits)
			w.WriteIntPacked(1)
			unitText(w, Bool, 0, "A", false, one)
		}},
		"a group with a text": {false, 1, func(w *bitio.Writer) {
			w.WriteBits(uint64(Group), kindBits)
			w.WriteIntPacked(1)
			unitText(w, String, 0, "A", false, Wire{Max: 5})
		}},
		"a group with a reference": {false, 1, func(w *bitio.Writer) {
			w.WriteBits(uint64(Group), kindBits)
			w.WriteIntPacked(1)
			unitText(w, Ref, 0, "A", false, one)
		}},
		"as many parts as there may be": {true, 1, func(w *bitio.Writer) {
			w.WriteBits(uint64(Group), kindBits)
			w.WriteIntPacked(MaxParts)
			for i := range MaxParts {
				unitText(w, Bool, 0, fmt.Sprint(i), i > 0, one)
			}
		}},
		"one more in two groups": {false, 2, func(w *bitio.Writer) {
			for g, n := range []int{MaxParts, 1} {
				w.WriteBits(uint64(Group), kindBits)
				w.WriteIntPacked(uint32(n))
				for i := range n {
					unitText(w, Bool, 0, fmt.Sprint(g, i), g+i > 0, one)
				}
			}
		}},
		"text to the byte": {true, 2, func(w *bitio.Writer) { textOf(w, maxSchemaText) }},
		"a byte more text": {false, 2, func(w *bitio.Writer) { textOf(w, maxSchemaText+1) }},
	} {
		r := readerOf(func(w *bitio.Writer) { w.WriteIntPacked(uint32(c.units)); c.write(w) })
		m := ReadSchema(r)
		require.Equal(t, c.fine, r.Err() == nil, "%s: %v", name, r.Err())
		require.Equal(t, c.fine, m != nil, name)
		if m == nil {
			continue
		}
		require.Zero(t, r.Remaining(), name)
		require.Len(t, m.Units, c.units, name)
		size := 0
		for i := range m.Units {
			size += len(m.Units[i].Path)
			for j := range m.Units[i].Parts {
				size += len(m.Units[i].Parts[j].Path)
			}
		}
		require.Equal(t, size, m.Size(), name)
	}
}

// textOf is two groups whose names are so many bytes together.
func textOf(w *bitio.Writer, n int) {
	head := strings.Repeat("x", 250)
	parts := n / 255
	for g, count := range []int{parts - 1, 1} {
		w.WriteBits(uint64(Group), kindBits)
		w.WriteIntPacked(uint32(count))
		for i := range count {
			if g+i == 0 {
				unitText(w, Bool, 0, head+"00000", false, Wire{N: 1})
				continue
			}
			length := 255
			if g == 1 {
				length = n - (parts-1)*255
			}
			unitText(w, Bool, min(250, length-5), fmt.Sprintf("%0*d", length-min(250, length-5), g*10_000+i), true, Wire{N: 1})
		}
	}
}

// TestSchemaSaysNothingTwice: what a unit has in common with the one before takes a few bytes.
func TestSchemaSaysNothingTwice(t *testing.T) {
	var fields []reflect.StructField
	for i := range 60 {
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("AFieldWithARatherLongName%02d", i), Type: reflect.TypeFor[float64](), Tag: `net:"q=0.125"`})
	}
	p := newPair(t, reflect.StructOf(fields))
	w := bitio.NewWriter(p.buf)
	p.l.WriteSchema(w)
	require.Less(t, w.Len(), 60*8*5)
}

// TestGroupsAcrossTheWire: parts of a group come by their names, whatever group they are in at the other end, and saturate as others do.
func TestGroupsAcrossTheWire(t *testing.T) {
	there := newPair(t, reflect.TypeFor[struct {
		A [100]uint64 `net:""`
	}]())
	require.Equal(t, Group, there.l.Units[0].Kind)
	require.Equal(t, there.l.Words(), there.l.words)
	require.Len(t, there.remote.Units[0].Parts, 100)
	l, err := Build(reflect.TypeFor[struct {
		B uint8       `net:""`
		A [100]uint16 `net:""`
	}]())
	require.NoError(t, err)
	m := there.schema(there.l)
	require.NoError(t, m.Match(l))
	write := func(part int, v uint64) *bitio.Reader {
		return readerOf(func(w *bitio.Writer) {
			var masks [2]Mask
			masks[part/64] = 1 << (part % 64)
			writePartMask(w, masks[0], 64)
			writePartMask(w, masks[1], 36)
			u := &m.Units[0].Parts[part]
			u.write(w, []uint64{v})
		})
	}
	dst := reflect.New(l.Type)
	o := l.Object(dst.UnsafePointer())
	for _, part := range []int{0, 63, 64, 99} {
		at := dst.Elem().Field(1).Index(part)
		for _, c := range []struct {
			v       uint64
			changed bool
			clamped bool
			is      uint64
		}{{7, true, false, 7}, {7, false, false, 7}, {70_000, true, true, 65_535}} {
			m.Clamped = false
			r := write(part, c.v)
			require.Equal(t, c.changed, m.ReadUnit(r, 0, nil, nil, o), "%d %+v", part, c)
			require.NoError(t, r.Err())
			require.Zero(t, r.Remaining())
			require.Equal(t, c.clamped, m.Clamped)
			require.Equal(t, c.is, at.Uint())
		}
	}
	require.Zero(t, dst.Elem().Field(0).Uint())
	r := write(3, 1)
	require.False(t, m.ReadUnit(r, 0, nil, nil, Object{}))
	require.NoError(t, r.Err())
	r = write(3, 1)
	require.False(t, m.ReadUnit(r, 0, nil, nil, there.l.Object(there.dst.UnsafePointer())))
	require.ErrorIs(t, r.Err(), ErrObject)
	require.Zero(t, there.dst.Elem().Field(0).Index(3).Uint())
}

// fussy is a fast array that takes nothing.
type fussy struct{ key uint32 }

var errFussy = errors.New("not this one")

func (f *fussy) NetKey() uint32                     { return f.key }
func (f *fussy) NetWrite(w *bitio.Writer, _ uint32) { w.WriteUint8(1) }
func (f *fussy) NetRead(*bitio.Reader) error        { return errFussy }

// TestFastArraysThatRefuse: what a list says of what came is told, or that it leaves some of it, and what follows is read.
func TestFastArraysThatRefuse(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		F fussy   `net:""`
		G toyList `net:""`
	}]())
	r := readerOf(func(w *bitio.Writer) { w.WriteBits(8, fastLength); w.WriteUint8(1) })
	p.remote.ReadUnit(r, 0, nil, nil, p.l.Object(p.dst.UnsafePointer()))
	require.ErrorIs(t, p.remote.Unread, errFussy)
	require.NoError(t, r.Err())
	require.Zero(t, r.Remaining())
	r = readerOf(func(w *bitio.Writer) { w.WriteBits(33, fastLength); w.WriteUint32(1); w.WriteBool(true) })
	p.remote.ReadUnit(r, 1, nil, nil, p.l.Object(p.dst.UnsafePointer()))
	require.ErrorIs(t, p.remote.Unread, ErrLeft)
	require.NoError(t, r.Err())
	require.Zero(t, r.Remaining())
	r = readerOf(func(w *bitio.Writer) { w.WriteBits(100, fastLength); w.WriteUint8(1) })
	p.remote.ReadUnit(r, 0, nil, nil, Object{})
	require.ErrorIs(t, r.Err(), ErrLength)
}
