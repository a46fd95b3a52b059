package layout

import (
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// codec is the serializer of a type that has none of package layout's own, and whose insides are nobody's business. write says why a
// value can't be sent, with a nil Writer that only, read whether it differs from what was there. Neither keeps the pointer.
type codec struct {
	form  uint32
	least int // bits
	write func(u *Unit, w *bitio.Writer, p unsafe.Pointer) error
	read  func(u *Unit, r *bitio.Reader, p unsafe.Pointer) (changed bool, err error)
}

var (
	timeCodec     = &codec{1, 1, writeTime, readTime}
	addrCodec     = binaryCodec[netip.Addr](2, func(a *netip.Addr, b []byte) ([]byte, error) { return a.AppendBinary(b) })
	addrPortCodec = binaryCodec[netip.AddrPort](3, func(a *netip.AddrPort, b []byte) ([]byte, error) { return a.AppendBinary(b) })
	prefixCodec   = binaryCodec[netip.Prefix](4, func(a *netip.Prefix, b []byte) ([]byte, error) { return a.AppendBinary(b) })
	textCodec     = &codec{5, 8, writeMarshaled, readMarshaled}

	marshalType   = reflect.TypeFor[encoding.TextMarshaler]()
	unmarshalType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// codecOf is the codec of a type that needs one, or nil.
func codecOf(t reflect.Type) *codec {
	switch t {
	case reflect.TypeFor[time.Time]():
		return timeCodec
	case reflect.TypeFor[netip.Addr]():
		return addrCodec
	case reflect.TypeFor[netip.AddrPort]():
		return addrPortCodec
	case reflect.TypeFor[netip.Prefix]():
		return prefixCodec
	}
	p := reflect.PointerTo(t)
	if !p.Implements(marshalType) || !p.Implements(unmarshalType) {
		return nil
	}
	if t.Kind() == reflect.Struct && opaque(t) || t.Kind() == reflect.Map {
		return textCodec
	}
	return nil
}

// opaque reports whether a struct shows nothing of itself.
func opaque(t reflect.Type) bool {
	for i := range t.NumField() {
		if _, tagged := t.Field(i).Tag.Lookup("net"); tagged || t.Field(i).IsExported() {
			return false
		}
	}
	return true
}

// A time is
//
//	1  0 for the zero time; else packed int, zigzag: seconds since 1970    30: nanoseconds
func writeTime(_ *Unit, w *bitio.Writer, p unsafe.Pointer) error {
	t := *(*time.Time)(p)
	if w == nil {
		return nil
	}
	w.WriteBool(!t.IsZero())
	if !t.IsZero() {
		w.WriteIntPacked64(zigzag(t.Unix()))
		w.WriteBits(uint64(t.Nanosecond()), nanoBits)
	}
	return nil
}

const nanoBits = 30

func readTime(_ *Unit, r *bitio.Reader, p unsafe.Pointer) (changed bool, err error) {
	t, now := (*time.Time)(p), time.Time{}
	if r.ReadBool() {
		sec, nano := unzigzag(r.ReadIntPacked64()), r.ReadBits(nanoBits)
		if nano >= uint64(time.Second) {
			return false, ErrLength
		}
		now = time.Unix(sec, int64(nano)).UTC()
	}
	if r.Err() != nil {
		return false, r.Err()
	}
	changed = !t.Equal(now)
	*t = now
	return changed, nil
}

// binaryCodec is of a type with a binary form.
func binaryCodec[T comparable, P interface {
	*T
	encoding.BinaryUnmarshaler
}](form uint32, append func(v *T, b []byte) ([]byte, error)) *codec {
	return &codec{form, 8, func(_ *Unit, w *bitio.Writer, p unsafe.Pointer) error {
		b, err := append((*T)(p), nil)
		if err == nil && w != nil {
			w.WriteIntPacked(uint32(len(b)))
			w.WriteBytes(b)
		}
		return err
	}, func(_ *Unit, r *bitio.Reader, p unsafe.Pointer) (bool, error) {
		n, ok := readLength(r, maxBlob, 8)
		if !ok {
			return false, r.Err()
		}
		b := make([]byte, n)
		r.ReadBytes(b)
		var now T
		if err := P(&now).UnmarshalBinary(b); err != nil {
			return false, err
		}
		changed := *(*T)(p) != now
		*(*T)(p) = now
		return changed, nil
	}}
}

// writeMarshaled writes the text form of a value, which is made anew each time.
func writeMarshaled(u *Unit, w *bitio.Writer, p unsafe.Pointer) error {
	var b []byte
	var err error
	switch v := reflect.NewAt(u.typ, p).Interface().(type) {
	case encoding.TextAppender:
		b, err = v.AppendText(nil)
	case encoding.TextMarshaler:
		b, err = v.MarshalText()
	}
	switch {
	case err != nil:
		return err
	case len(b) > int(u.Max):
		return fmt.Errorf("%d bytes of text, the most are %d", len(b), u.Max)
	case !utf8.Valid(b):
		return fmt.Errorf("the text isn't UTF-8")
	case w == nil:
		return nil
	}
	w.WriteIntPacked(uint32(len(b)))
	w.WriteBytes(b)
	return nil
}

// readMarshaled reads it. The value gets new memory: copies of the old one keep theirs.
func readMarshaled(u *Unit, r *bitio.Reader, p unsafe.Pointer) (changed bool, err error) {
	n, ok := readLength(r, u.Max, 8)
	if !ok {
		return false, r.Err()
	}
	b := make([]byte, n)
	r.ReadBytes(b)
	now := reflect.New(u.typ)
	if err := now.Interface().(encoding.TextUnmarshaler).UnmarshalText(b); err != nil {
		return false, err
	}
	reflect.NewAt(u.typ, p).Elem().Set(now.Elem())
	return true, nil
}

// addOpaque adds a value with a codec.
func (l *Layout) addOpaque(t reflect.Type, offset uintptr, path string, o options, c *codec) error {
	u := Unit{Path: path, Field: len(l.Fields), Condition: o.cond, NetGroup: o.netGroup, size: t.Size(), typ: t, codec: c, form: c.form}
	u.Kind, u.Max, u.offsets[0] = Custom, o.cap, offset
	l.Units = append(l.Units, u)
	return nil
}

// addPointer adds a pointer to a struct, which is the struct's value or none.
func (l *Layout) addPointer(t reflect.Type, offset uintptr, path string, o options) error {
	switch {
	case t.Elem().Kind() != reflect.Struct:
		return fmt.Errorf("%w: %s is a %v; a pointer may be to a struct", ErrKind, path, t)
	case hasBase(t.Elem()):
		return fmt.Errorf("%w: %s is a %v, an actor; use an actorrep.Ref", ErrKind, path, t)
	}
	elem, err := l.element(t.Elem(), path+".", o)
	if err != nil {
		return err
	}
	u := Unit{Path: path, Field: len(l.Fields), Condition: o.cond, NetGroup: o.netGroup, size: t.Size(), typ: t, elem: elem}
	u.Kind, u.offsets[0] = Pointer, offset
	l.Units = append(l.Units, u)
	return nil
}

func isBase(t reflect.Type) bool { return t.Name() == "Base" && t.PkgPath() == actorPath }

// hasBase reports whether a struct embeds actorrep.Base.
func hasBase(t reflect.Type) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct && (isBase(f.Type) || hasBase(f.Type)) {
			return true
		}
	}
	return false
}

const actorPath = "github.com/bunchnet/bunchnet/actorrep"

// readPointer reads what a pointer points to, into new memory: copies of the old value keep theirs.
func (u *Unit) readPointer(r *bitio.Reader, p *unsafe.Pointer) (changed bool) {
	if !r.ReadBool() {
		changed = *p != nil
		*p = nil
		return changed
	}
	now := reflect.New(u.typ.Elem()).UnsafePointer()
	if u.elem.readAll(r, now, nil); r.Err() == nil {
		*p = now
	}
	return true
}
