package layout

import (
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// picky refuses some of what comes.
type picky struct{ V uint8 }

var errPicky = errors.New("not this one")

func (p *picky) WriteNet(w *bitio.Writer) { w.WriteUint8(p.V) }
func (p *picky) ReadNet(r *bitio.Reader) error {
	if p.V = r.ReadUint8(); p.V == 99 {
		return errPicky
	}
	return r.Err()
}

type item struct {
	A uint8
	S string `net:"cap=2"`
}

type opaqueValues struct {
	When  time.Time      `net:""`
	From  netip.Addr     `net:""`
	Port  netip.AddrPort `net:""`
	Net   netip.Prefix   `net:""`
	Worth big.Int        `net:"cap=8"`
	Picky picky          `net:""`
	List  []uint16       `net:"cap=4"`
	Item  *item          `net:""`
}

// set sets a value other than the zero one, and others for other n.
func (o *opaqueValues) set(n int) {
	o.When = time.Unix(int64(n)*1e6, int64(n)).UTC()
	o.From = netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})
	o.Port = netip.AddrPortFrom(o.From, uint16(n))
	o.Net = netip.PrefixFrom(o.From, 24)
	o.Worth.SetInt64(int64(n))
	o.Picky.V = uint8(n)
	o.List = []uint16{uint16(n), 2}
	o.Item = &item{uint8(n), "i"}
}

// TestOpaqueValues: values with a serializer that isn't this package's arrive as they are, and say whether they differ from what was
// there; what can't be read is told and changes nothing.
func TestOpaqueValues(t *testing.T) {
	p := newPair(t, reflect.TypeFor[opaqueValues]())
	src, dst := p.src.Interface().(*opaqueValues), p.dst.Interface().(*opaqueValues)
	read := func(i int, w *bitio.Writer) (changed bool, err error) {
		r := bitio.NewReader(w.Bytes(), w.Len())
		changed = p.remote.ReadUnit(r, i, nil, nil, p.l.Object(unsafe.Pointer(dst)))
		if r.Err() == nil {
			require.Zero(t, r.Remaining())
		}
		return changed, errors.Join(r.Err(), p.remote.Unread)
	}
	for n := 1; n < 4; n++ {
		src.set(n)
		require.Equal(t, p.l.All(), p.compare(p.l.All()))
		for i := range p.l.Units {
			changed, err := read(i, p.write(i, nil))
			require.NoError(t, err)
			require.True(t, changed, p.l.Units[i].Path)
		}
		require.Equal(t, src, dst)
	}
	for i := range p.l.Units[:4] { // the same again
		changed, err := read(i, p.write(i, nil))
		require.NoError(t, err)
		require.False(t, changed, p.l.Units[i].Path)
	}
	was := *dst
	for path, body := range map[string]func(w *bitio.Writer){
		"When ": func(w *bitio.Writer) { w.WriteBool(true) }, // and no more
		"When":  func(w *bitio.Writer) { w.WriteBool(true); w.WriteIntPacked64(2); w.WriteBits(1e9, 30) },
		"From":  func(w *bitio.Writer) { w.WriteIntPacked(3); w.WriteBytes([]byte{1, 2, 3}) },
		"Port":  func(w *bitio.Writer) { w.WriteIntPacked(1); w.WriteBytes([]byte{1}) },
		"Net":   func(w *bitio.Writer) { w.WriteIntPacked(2); w.WriteBytes([]byte{1, 99}) },
		"Worth": func(w *bitio.Writer) { w.WriteIntPacked(2); w.WriteBytes([]byte("x1")) },
	} {
		for i := range p.l.Units {
			if p.l.Units[i].Path != strings.TrimSpace(path) {
				continue
			}
			b := bitio.NewWriter(make([]byte, 64))
			body(b)
			w := bitio.NewWriter(make([]byte, 64))
			w.WriteIntPacked(uint32(b.Len()))
			w.WriteBitsFrom(b.Bytes(), 0, b.Len())
			changed, err := read(i, w)
			require.Error(t, err, path)
			require.False(t, changed, path)
		}
	}
	src.set(5)
	p.compare(p.l.All())
	for i := range 5 { // cut short
		w := p.write(i, nil)
		for n := range w.Len() {
			cut := bitio.NewWriter(make([]byte, 64))
			cut.WriteBitsFrom(w.Bytes(), 0, n)
			changed, err := read(i, cut)
			require.Error(t, err)
			require.False(t, changed)
		}
	}
	require.Equal(t, was, *dst)
	src.Picky.V = 99
	require.NotZero(t, p.compare(p.l.All()))
	_, err := read(5, p.write(5, nil))
	require.ErrorIs(t, err, errPicky)
}

// TestOpaqueFits: what such a value can't say is told with its path, or without where it has none, and so is that a fast array always fits.
func TestOpaqueFits(t *testing.T) {
	l, err := Build(reflect.TypeFor[opaqueValues]())
	require.NoError(t, err)
	o := &opaqueValues{}
	o.set(1)
	require.NoError(t, l.Check(unsafe.Pointer(o), l.All()))
	o.Worth.SetString("123456789", 10)
	require.ErrorIs(t, l.Check(unsafe.Pointer(o), l.All()), ErrUnfit)
	require.ErrorContains(t, l.Check(unsafe.Pointer(o), l.All()), "Worth: ")
	o.set(1)
	o.Item.S = "abc"
	require.ErrorIs(t, l.Check(unsafe.Pointer(o), l.All()), ErrUnfit, "behind a pointer")
	o.Item = nil
	require.NoError(t, l.Check(unsafe.Pointer(o), l.All()))
	type many struct {
		N [70]uint8 `net:"max=7"`
	}
	g, err := Build(reflect.TypeFor[many]())
	require.NoError(t, err)
	m := &many{}
	require.NoError(t, g.Check(unsafe.Pointer(m), g.All()))
	for i := range m.N {
		*m = many{}
		m.N[i] = 8
		require.ErrorIs(t, g.Check(unsafe.Pointer(m), g.All()), ErrUnfit, "%d, in a group", i)
	}
	v, err := BuildValue(reflect.TypeFor[string]())
	require.NoError(t, err)
	text := "\xff"
	require.EqualError(t, v.Check(unsafe.Pointer(&text), v.All()), ErrUnfit.Error()+": the text isn't UTF-8")
}

// shown has a text form, and fields of its own: these are sent.
type shown struct{ Name string }

func (s *shown) MarshalText() ([]byte, error)    { return []byte("shown"), nil }
func (s *shown) UnmarshalText(text []byte) error { s.Name = string(text); return nil }

// TestTextOrFields: a struct with a text form is sent as its fields when it has any that can be sent.
func TestTextOrFields(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		S shown   `net:""`
		B big.Int `net:""`
	}]())
	require.Equal(t, []string{"S.Name", "B"}, []string{p.l.Units[0].Path, p.l.Units[1].Path})
	require.Equal(t, []Kind{String, Custom}, []Kind{p.l.Units[0].Kind, p.l.Units[1].Kind})
}

// TestLentMemory: with a Memory, strings, bytes and slices of a value are in memory that is used again, without allocation.
func TestLentMemory(t *testing.T) {
	type value struct {
		S string
		B []byte
		L []uint16
	}
	l, err := BuildValue(reflect.TypeFor[value]())
	require.NoError(t, err)
	w := bitio.NewWriter(make([]byte, 1000))
	sent := value{strings.Repeat("a", 100), []byte{1, 2, 3}, []uint16{4, 5}}
	l.WriteValue(w, unsafe.Pointer(&sent))
	got, mem := &value{}, &Memory{}
	data, n := w.Bytes(), w.Len()
	r := bitio.NewReader(data, n)
	read := func() {
		r.Reset(data, n)
		l.ReadValue(r, unsafe.Pointer(got), mem)
	}
	read()
	require.NoError(t, r.Err())
	require.Equal(t, sent, *got)
	mem.Keep() // the strings were in two pieces
	*got = value{}
	read()
	require.Equal(t, []int{2, 3}, []int{cap(got.L), cap(got.B)}, "who appends gets other memory")
	kept := *got
	mem.Keep()
	require.GreaterOrEqual(t, mem.Size(), 103+4)
	text := cap(mem.text)
	require.Equal(t, text+2*cap(got.L), mem.Size(), "slices count too")
	require.Equal(t, string(make([]byte, 100)), kept.S, "what was lent is taken back")
	require.Equal(t, make([]byte, 3), kept.B)
	require.Zero(t, testing.AllocsPerRun(50, func() {
		*got = value{}
		read()
		mem.Keep()
	}))
	read()
	require.Equal(t, sent, *got)
}

// wideStruct is a class with groups: numbers of several kinds, more than a class has units, and something behind them.
func wideStruct() reflect.Type {
	var fields []reflect.StructField
	types := []reflect.Type{reflect.TypeFor[uint8](), reflect.TypeFor[int32](), reflect.TypeFor[bool](), reflect.TypeFor[float64]()}
	for i := range 130 {
		name := string(rune('A'+i%7)) + strings.Repeat("x", i%3) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		f := reflect.StructField{Name: name, Type: types[i%4], Tag: `net:""`}
		if i%4 == 0 {
			f.Tag = reflect.StructTag([]string{`net:"max=7"`, `net:"max=90"`, `net:""`}[i%3])
		}
		fields = append(fields, f)
	}
	fields = append(fields, reflect.StructField{Name: "Text", Type: reflect.TypeFor[string](), Tag: `net:""`})
	return reflect.StructOf(fields)
}

// TestGroupSchema: the parts of groups are described after each other, whatever kinds and names they have, and what comes behind a group is
// matched too.
func TestGroupSchema(t *testing.T) {
	p := newPair(t, wideStruct())
	require.NotZero(t, p.l.Groups)
	var want, got []string
	for u := range p.l.Leaves {
		want = append(want, u.Path)
	}
	for i := range p.remote.Units {
		u := &p.remote.Units[i]
		list := []RemoteUnit{*u}
		if u.Kind == Group {
			list = u.Parts
		}
		for j := range list {
			got = append(got, list[j].Path)
			require.NotNil(t, list[j].own, list[j].Path)
			require.Equal(t, list[j].own.Wire.Kind, list[j].Kind)
			require.Equal(t, list[j].own.Max, list[j].Max, list[j].Path)
		}
	}
	require.Equal(t, want, got)
}

// TestBuildInside: groups of connections hold for all of a field, unexported fields are no parameters, and errors within pointers and slices
// are errors.
func TestBuildInside(t *testing.T) {
	l, err := Build(reflect.TypeFor[struct {
		A uint8 `net:"group=red"`
		B struct {
			C uint8
			S string
		} `net:"group=blue"`
		D uint8 `net:""`
		E bool  `net:"group=red"`
	}]())
	require.NoError(t, err)
	want := map[string]Mask{}
	for i := range l.Units {
		if group := map[byte]string{'A': "red", 'B': "blue", 'E': "red"}[l.Units[i].Path[0]]; group != "" {
			want[group] |= 1 << i
		}
	}
	require.Len(t, l.Units, 5)
	require.Equal(t, want, l.NetGroups)
	v, err := BuildValue(reflect.TypeFor[struct {
		A uint8
		b string
		C bool
	}]())
	require.NoError(t, err)
	require.Len(t, v.Units, 2)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct {
			P *struct {
				X chan int `net:""`
			} `net:""`
		}](),
		reflect.TypeFor[struct {
			L []struct {
				X chan int `net:""`
			} `net:""`
		}](),
		reflect.TypeFor[struct {
			A [2]struct {
				X chan int `net:""`
			} `net:""`
		}](),
	} {
		_, err := Build(typ)
		require.ErrorIs(t, err, ErrKind, "%v", typ)
	}
}

// brief writes nothing for 0, and short reads less than it wrote.
type brief struct{ V uint8 }

func (b *brief) WriteNet(w *bitio.Writer) {
	if b.V != 0 {
		w.WriteUint8(b.V)
	}
}

func (b *brief) ReadNet(r *bitio.Reader) error {
	if b.V = 0; r.Remaining() > 0 {
		b.V = r.ReadUint8()
	}
	return r.Err()
}

type short struct{ V uint8 }

func (s *short) WriteNet(w *bitio.Writer)      { w.WriteUint8(s.V); w.WriteBool(true) }
func (s *short) ReadNet(r *bitio.Reader) error { s.V = r.ReadUint8(); return nil }

// TestReadsWhatWasWritten: a value that is written as nothing comes, and one of which less is read than was written is told, on its own and
// in a slice; what follows is read.
func TestReadsWhatWasWritten(t *testing.T) {
	p := newPair(t, reflect.TypeFor[struct {
		Brief  brief   `net:""`
		Short  short   `net:""`
		Shorts []short `net:""`
	}]())
	src, dst := p.src.Elem(), p.dst.Elem()
	set := func(v uint64) {
		src.Field(0).Field(0).SetUint(v)
		src.Field(1).Field(0).SetUint(v)
		src.Field(2).Set(reflect.ValueOf([]short{{uint8(v)}}))
		p.compare(p.l.All())
	}
	read := func(i int) error {
		p.remote.Unread = nil
		w := p.write(i, nil)
		r := bitio.NewReader(w.Bytes(), w.Len())
		require.True(t, p.remote.ReadUnit(r, i, nil, nil, p.l.Object(p.dst.UnsafePointer())))
		require.NoError(t, r.Err())
		require.Zero(t, r.Remaining())
		return p.remote.Unread
	}
	for _, v := range []uint64{7, 0} {
		set(v)
		require.NoError(t, read(0))
		require.Equal(t, v, dst.Field(0).Field(0).Uint())
		require.ErrorIs(t, read(1), ErrLeft)
		require.ErrorIs(t, read(2), ErrLeft)
	}
}
