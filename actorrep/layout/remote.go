package layout

import (
	"errors"
	"fmt"
	"math/bits"
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
	words   int
	local   *Layout
}

// RemoteUnit is a unit of a peer's.
type RemoteUnit struct {
	Wire
	Path  string
	Form  uint32 // hash of a slice's elements; of fast arrays and values with their own serializer what they say
	Local int    // our unit; -1 for none
	first int
}

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
//	each: packed length | path, kind 4, n 3, bits 5, IntPacked max, Float64 step when a step, 32 form when a slice, custom or fast
func (l *Layout) WriteSchema(w *bitio.Writer) {
	w.WriteIntPacked(uint32(len(l.Units)))
	for i := range l.Units {
		u := &l.Units[i]
		writeText(w, u.Path)
		w.WriteBits(uint64(u.Kind), 4)
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
	paths := make(map[string]bool, n)
	for i := range n {
		u := RemoteUnit{Path: ReadText(r, MaxPath), Local: -1, first: m.words}
		u.Kind, u.N, u.Bits, u.Max = Kind(r.ReadBits(4)), uint8(r.ReadBits(3)), uint8(r.ReadBits(5)), r.ReadIntPacked()
		if u.Kind == Step {
			u.Step = r.ReadFloat64()
		}
		if u.hasForm() {
			u.Form = r.ReadUint32()
		}
		if r.Err() == nil && !u.plausible() {
			r.Fail(fmt.Errorf("layout: %q is described as no unit can be", u.Path))
		}
		if r.Err() == nil && paths[u.Path] {
			r.Fail(fmt.Errorf("layout: %q is described twice", u.Path))
		}
		if r.Err() != nil {
			return nil
		}
		paths[u.Path] = true
		m.words += int(u.N)
		m.Units = append(m.Units, u)
		if u.HasDelta() {
			m.Deltas |= 1 << i
		}
	}
	return m
}

func (u *RemoteUnit) plausible() bool {
	switch {
	case u.Kind >= kinds, u.N > MaxNumbers, u.Kind.IsBlob() != (u.N == 0), u.Bits > 16, u.Kind == Angle && u.Bits < 8:
		return false
	case u.Kind == Max && (u.Max == 0 || u.Max == 1<<32-1), u.Kind == Step && !(u.Step > 0):
		return false
	}
	return true
}

// Match finds our units beside the peer's. Its errors name the fields that don't fit.
func (m *Remote) Match(l *Layout) error {
	m.local = l
	var errs []error
	for i := range m.Units {
		u := &m.Units[i]
		for j := range l.Units {
			own := &l.Units[j]
			if own.Path != u.Path {
				continue
			}
			if err := u.fits(own); err != nil {
				errs = append(errs, err)
			}
			u.Local = j
			if own.Kind == Ref {
				m.Refs |= 1 << i
			}
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

// Words is how many numbers the peer's class has.
func (m *Remote) Words() int { return m.words }

// All is every unit of the peer's.
func (m *Remote) All() Mask { return maskOf(0, len(m.Units)) }

// ReadUnit reads unit i: numbers into v, against base if that isn't nil, and whatever it is into the object, if
// there is one and we have the field. It reports whether the object differs from before. An object of another layout than
// the one given to Match is an error of the reader, and stays as it is.
func (m *Remote) ReadUnit(r *bitio.Reader, i int, v, base []uint64, o Object) (changed bool) {
	u := &m.Units[i]
	obj := o.ptr
	apply := obj != nil && u.Local >= 0
	if apply && o.layout != m.local {
		r.Fail(ErrObject)
		return false
	}
	if u.Kind.IsBlob() {
		return m.readBlob(r, u, obj, apply)
	}
	v = v[:u.N]
	if base != nil {
		u.readDelta(r, v, base)
	} else {
		u.read(r, v)
	}
	if r.Err() != nil || !apply {
		return false
	}
	own := &m.local.Units[u.Local]
	var old, now [MaxNumbers]uint64
	own.load(obj, old[:u.N])
	if !own.store(&u.Wire, obj, v) {
		m.Clamped = true
	}
	own.load(obj, now[:u.N])
	return old != now
}

func (m *Remote) readBlob(r *bitio.Reader, u *RemoteUnit, obj unsafe.Pointer, apply bool) bool {
	if u.Kind == String {
		if apply {
			return m.local.Units[u.Local].readMemory(r, obj, nil)
		}
		n, ok := readLength(r, maxCap, 8)
		if ok {
			r.Skip(n * 8)
		}
		return false
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
	if !apply || n == 0 {
		return false
	}
	own := &m.local.Units[u.Local]
	changed := true
	if u.Kind == Fast {
		fast := own.pointer(obj).Interface().(FastArray)
		was := fast.NetKey()
		if err := fast.NetRead(&body); err != nil {
			r.Fail(err)
		}
		changed = fast.NetKey() != was
	} else {
		changed = own.readMemory(&body, obj, nil)
	}
	if body.Err() != nil {
		r.Fail(body.Err())
	}
	return changed
}

// Extrapolate puts where the numbers of m go, that were b2 and then b, into dst.
func (m *Remote) Extrapolate(dst []uint64, mask Mask, b, b2 []uint64, num, den int64) {
	for ; mask != 0; mask &= mask - 1 {
		u := &m.Units[bits.TrailingZeros64(mask)]
		from, to := u.first, u.first+int(u.N)
		u.extrapolate(dst[from:to], b[from:to], b2[from:to], num, den)
	}
}

// First is where the numbers of unit i begin.
func (m *Remote) First(i int) int { return m.Units[i].first }

// LocalMask is our units for a mask of the peer's.
func (m *Remote) LocalMask(mask Mask) (local Mask) {
	for ; mask != 0; mask &= mask - 1 {
		if j := m.Units[bits.TrailingZeros64(mask)].Local; j >= 0 {
			local |= 1 << j
		}
	}
	return local
}
