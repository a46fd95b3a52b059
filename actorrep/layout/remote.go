package layout

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Remote is a peer's layout of a class, with our own beside it. What the peer has and we haven't is skipped; what we
// have and the peer hasn't stays as it is.
type Remote struct {
	Units  []RemoteUnit
	Deltas Mask
	Refs   Mask // of our own references
	// Clamped is set when a number that came was too large for our field, which is the largest it can be.
	Clamped bool
	// Unread is set when a value that came can't be taken, as it is over our cap or its own serializer refuses it or reads less than came. What follows it is read.
	Unread error
	kept   keptAt // behind the last unit
	size   int    // bytes of the paths
	local  *Layout
}

// RemoteUnit is a unit of a peer's.
type RemoteUnit struct {
	Wire
	Path  string
	Form  uint32 // hash of a slice's elements; of fast arrays and values with their own serializer what they say
	Parts []RemoteUnit
	kept  keptAt
	own   *Unit // ours, or nil
}

// ErrLeft is a value of which not all was read: what its ReadNet, or that of one within it, reads isn't what WriteNet wrote.
var ErrLeft = errors.New("layout: its ReadNet reads less than WriteNet wrote")

// ErrObject is a value of another class than the one that was matched with the peer's. Nothing is written into it.
var ErrObject = errors.New("layout: a value of another class than the peer describes")

// Object is a value in memory and the layout of its type. ReadUnit writes into no other, so that the values of one class
// can't be written over those of another. The zero Object is none.
type Object struct {
	ptr    unsafe.Pointer
	layout *Layout
}

// Object is the value at p, which must be of the layout's type.
func (l *Layout) Object(p unsafe.Pointer) Object { return Object{p, l} }

// ErrRetyped is a field that has another kind at the other end.
var ErrRetyped = errors.New("layout: a field has another type at the other end")

// WriteSchema writes the layout for a peer's ReadSchema.
//
//	IntPacked  units
//	each: kind 5; of a group IntPacked parts, each as a unit that is none; of others
//	  8 how many bytes of the path are those of the path before, packed length | the rest of it
//	  1 when that is all that differs from the unit before
//	  n 3, bits 5, IntPacked max, Float64 step when a step, 32 form when a slice, custom or fast
func (l *Layout) WriteSchema(w *bitio.Writer) {
	w.WriteIntPacked(uint32(len(l.Units)))
	last := &Unit{}
	for i := range l.Units {
		u := &l.Units[i]
		w.WriteBits(uint64(u.Kind), kindBits)
		if u.Kind != Group {
			u.writeSchema(w, last)
			last = u
			continue
		}
		w.WriteIntPacked(uint32(len(u.Parts)))
		for j := range u.Parts {
			p := &u.Parts[j]
			w.WriteBits(uint64(p.Kind), kindBits)
			p.writeSchema(w, last)
			last = p
		}
	}
}

const kindBits = 5

func (u *Unit) writeSchema(w *bitio.Writer, last *Unit) {
	n := 0
	for n < min(len(u.Path), len(last.Path), 255) && u.Path[n] == last.Path[n] {
		n++
	}
	w.WriteBits(uint64(n), 8)
	writeText(w, u.Path[n:])
	same := u.Wire == last.Wire && !u.hasForm()
	w.WriteBool(same)
	if same {
		return
	}
	w.WriteBits(uint64(u.N), 3)
	w.WriteBits(uint64(u.Bits), 5)
	w.WriteIntPacked(u.Max)
	if u.Kind == Step {
		w.WriteFloat64(u.Step)
	}
	if u.hasForm() {
		w.WriteUint32(u.Form())
	}
}

// MaxPath bounds names in schemas, in bytes.
const MaxPath = 256

// ReadText reads a name as WriteText writes it, of at most so many bytes.
func ReadText(r *bitio.Reader, most int) string {
	n, ok := readLength(r, uint32(most), 8)
	if !ok {
		return ""
	}
	b := make([]byte, n)
	r.ReadBytes(b)
	return string(b)
}

// WriteText writes a name: packed length, bytes.
func WriteText(w *bitio.Writer, s string) { writeText(w, s) }

// ReadSchema reads a peer's layout. Errors are the reader's.
func ReadSchema(r *bitio.Reader) *Remote {
	n := r.ReadIntPacked()
	if r.Err() == nil && n > MaxUnits {
		r.Fail(ErrMany)
	}
	if r.Err() != nil {
		return nil
	}
	m := &Remote{}
	sr := schemaReader{paths: make(map[string]bool, n)}
	for i := range n {
		u := sr.unit(r)
		if u.Kind == Group {
			parts := r.ReadIntPacked()
			if r.Err() == nil && (parts == 0 || int(parts) > MaxParts) {
				r.Fail(ErrMany)
			}
			for range parts {
				if r.Err() != nil {
					return nil
				}
				u.Parts = append(u.Parts, sr.unit(r))
				if p := &u.Parts[len(u.Parts)-1]; p.Kind.IsBlob() || p.Kind == Ref || p.Kind == Quat {
					r.Fail(fmt.Errorf("layout: %q is no part of a group", p.Path))
				}
			}
		}
		if r.Err() != nil {
			return nil
		}
		u.kept = m.kept.add(&u.Wire)
		m.Units = append(m.Units, u)
		if u.HasDelta() {
			m.Deltas |= 1 << i
		}
	}
	m.size = sr.size
	return m
}

// schemaReader reads the units of a schema.
type schemaReader struct {
	paths map[string]bool
	last  RemoteUnit
	size  int
}

// maxSchemaText bounds the paths of a class, in bytes: much more than a description of 16 KiB has room for, unless its paths are
// nothing but the same again.
const maxSchemaText = 1 << 16

// unit reads one, of a group its kind only.
func (s *schemaReader) unit(r *bitio.Reader) RemoteUnit {
	u := RemoteUnit{Wire: Wire{Kind: Kind(r.ReadBits(kindBits))}}
	if u.Kind == Group {
		return u
	}
	n := min(int(r.ReadBits(8)), len(s.last.Path))
	u.Path = s.last.Path[:n] + ReadText(r, MaxPath-n)
	if r.ReadBool() {
		kind := u.Kind
		u.Wire = s.last.Wire
		if kind != u.Kind || u.hasForm() {
			r.Fail(fmt.Errorf("layout: %q is described as the unit before, and isn't", u.Path))
		}
	} else {
		u.N, u.Bits, u.Max = uint8(r.ReadBits(3)), uint8(r.ReadBits(5)), r.ReadIntPacked()
		if u.Kind == Step {
			u.Step = r.ReadFloat64()
		}
		if u.hasForm() {
			u.Form = r.ReadUint32()
		}
	}
	s.size += len(u.Path)
	switch {
	case r.Err() != nil:
	case !u.plausible():
		r.Fail(fmt.Errorf("layout: %q is described as no unit can be", u.Path))
	case s.paths[u.Path]:
		r.Fail(fmt.Errorf("layout: %q is described twice", u.Path))
	case s.size > maxSchemaText || len(s.paths) >= MaxParts:
		r.Fail(ErrMany)
	}
	if r.Err() == nil {
		s.paths[u.Path] = true
		s.last = u
	}
	return u
}

func (u *RemoteUnit) plausible() bool {
	switch {
	case u.Kind >= Group, u.N > MaxNumbers, u.Kind.IsBlob() != (u.N == 0), u.Bits > 16, (u.Kind == Angle || u.Kind == Quat) && u.Bits < 8, u.Kind == Quat && u.N != 4:
		return false
	case u.Kind == Max && (u.Max == 0 || u.Max == math.MaxUint32), u.Kind == Step && !(u.Step > 0):
		return false
	}
	return true
}

// Match finds our units beside the peer's. Its errors name the fields that don't fit.
func (m *Remote) Match(l *Layout) error {
	m.local = l
	m.Refs = 0
	var errs []error
	own := map[string]*Unit{}
	for u := range l.Leaves {
		own[u.Path] = u
	}
	match := func(u *RemoteUnit) {
		u.own = own[u.Path]
		if u.own == nil {
			return
		}
		if err := u.fits(u.own); err != nil {
			errs = append(errs, err)
		}
	}
	for i := range m.Units {
		u := &m.Units[i]
		if u.Kind == Group {
			for j := range u.Parts {
				match(&u.Parts[j])
			}
			continue
		}
		if match(u); u.own != nil && u.own.Kind == Ref {
			m.Refs |= 1 << i
		}
	}
	return errors.Join(errs...)
}

func (u *RemoteUnit) fits(own *Unit) error {
	if u.Kind != own.Kind || u.N != own.N {
		return fmt.Errorf("%w: %s is %d %v there and %d %v here", ErrRetyped, u.Path, u.N, u.Kind, own.N, own.Kind)
	}
	if u.hasForm() && u.Form != own.Form() {
		return fmt.Errorf("%w: %s is a %v of something else there", ErrRetyped, u.Path, u.Kind)
	}
	return nil
}

// All is every unit of the peer's.
func (m *Remote) All() Mask { return maskOf(0, len(m.Units)) }

// ReadUnit reads unit i: numbers into v, against what past knows of them if that isn't nil, and whatever it is into the object, if
// there is one and we have the field. It reports whether the object differs from before. An object of another layout than
// the one given to Match is an error of the reader, and stays as it is.
func (m *Remote) ReadUnit(r *bitio.Reader, i int, v []uint64, past *Past, o Object) (changed bool) {
	u := &m.Units[i]
	obj := o.ptr
	apply := obj != nil && u.own != nil
	if apply && o.layout != m.local {
		r.Fail(ErrObject)
		return false
	}
	if u.Kind == Group {
		m.ReadGroup(r, i, o, func(*Unit) {}, func(_ *Unit, differs, fits bool) {
			changed = changed || differs
			m.Clamped = m.Clamped || !fits
		})
		return changed
	}
	if u.Kind.IsBlob() {
		return m.readBlob(r, u, obj, apply)
	}
	v = v[:u.N]
	switch {
	case past == nil || past.Mask>>i&1 == 0:
		u.read(r, v)
	case past.Predicted>>i&1 != 0:
		var guess [MaxNumbers]int64
		var means [MaxNumbers]uint64
		u.predict(past, u.kept, &guess, &means)
		u.readNear(r, v, &guess, &means)
	default:
		u.readDelta(r, v, past.newest(u.kept)[:])
	}
	if r.Err() != nil || !apply {
		return false
	}
	own := u.own
	var old, now [MaxNumbers]uint64
	own.load(obj, old[:u.N])
	if !own.store(&u.Wire, obj, v) {
		m.Clamped = true
	}
	own.load(obj, now[:u.N])
	return old != now
}

func (m *Remote) readBlob(r *bitio.Reader, u *RemoteUnit, obj unsafe.Pointer, apply bool) (changed bool) {
	if u.Kind == String {
		body := *r
		n, ok := readLength(r, maxCap, 8)
		if !ok {
			return false
		}
		if r.Skip(n * 8); apply {
			changed = u.own.readMemory(&body, obj, nil)
			m.Unread = body.Err()
		}
		return changed
	}
	n := uint64(0)
	if u.Kind == Fast {
		n = r.ReadBits(fastLength)
	} else {
		n = uint64(r.ReadIntPacked())
	}
	if n > uint64(r.Remaining()) {
		r.Fail(ErrLength)
	}
	if r.Err() != nil {
		return false
	}
	body := r.Sub(int(n))
	if !apply || n == 0 && u.Kind == Fast {
		return false
	}
	own := u.own
	if u.Kind != Fast {
		changed = own.readMemory(&body, obj, nil)
		m.Unread = left(&body)
		return changed
	}
	fast := own.pointer(obj).Interface().(FastArray)
	was := fast.NetKey()
	if m.Unread = fast.NetRead(&body); m.Unread == nil {
		m.Unread = left(&body)
	}
	return fast.NetKey() != was
}

// left is the error of a reader whose value was read whole: its own, or that there is more.
func left(r *bitio.Reader) error {
	if r.Remaining() > 0 {
		return fmt.Errorf("%w: %d of its bits are left", ErrLeft, r.Remaining())
	}
	return r.Err()
}

// Own is our unit for one of the peer's that is no group; nil for none. It may be a part of a group of ours.
func (m *Remote) Own(i int) *Unit { return m.Units[i].own }

// Size is the bytes that its names take.
func (m *Remote) Size() int { return m.size }
