package layout

import (
	"fmt"
	"math/bits"
	"reflect"
	"unicode/utf8"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// load brings the numbers of a unit, as they are sent, up to date with the object at obj, and reports whether they differ from what v was.
func (u *Unit) load(obj unsafe.Pointer, v []uint64) (differs bool) {
	at, all := u.offsets[:len(v)], uint64(0)
	switch u.Kind {
	case Quat:
		var f [4]float64
		for i := range f {
			f[i] = u.loadFloat(unsafe.Add(obj, u.offsets[i]))
		}
		a, b, c, d := Quaternion(f[0], f[1], f[2], f[3], u.Bits)
		all = (v[0] ^ a) | (v[1] ^ b) | (v[2] ^ c) | (v[3] ^ d)
		v[0], v[1], v[2], v[3] = a, b, c, d
	case Step:
		for i := range v {
			n := Steps(u.loadFloat(unsafe.Add(obj, at[i])), u.Step)
			all |= v[i] ^ n
			v[i] = n
		}
	case Angle:
		for i := range v {
			n := Turn(u.loadFloat(unsafe.Add(obj, at[i])), u.Bits)
			all |= v[i] ^ n
			v[i] = n
		}
	case Int:
		for i := range v {
			n := zigzag(loadInt(unsafe.Add(obj, at[i]), u.size))
			all |= v[i] ^ n
			v[i] = n
		}
	case Max:
		for i := range v {
			n := min(loadUint(unsafe.Add(obj, at[i]), u.size), uint64(u.Max)+1) // one more is what doesn't fit
			all |= v[i] ^ n
			v[i] = n
		}
	default:
		for i := range v {
			n := loadUint(unsafe.Add(obj, at[i]), u.size)
			all |= v[i] ^ n
			v[i] = n
		}
	}
	return all != 0
}

// Holds reports whether the number at an offset of the struct is one of the unit's.
func (u *Unit) Holds(offset uintptr) bool {
	for _, at := range u.offsets[:max(u.N, 1)] {
		if offset >= at && offset < at+u.size {
			return true
		}
	}
	return false
}

func (u *Unit) loadFloat(p unsafe.Pointer) float64 {
	if u.size == 4 {
		return float64(*(*float32)(p))
	}
	return *(*float64)(p)
}

// store sets numbers that came in the form of w, which has the same kind as u. Integers that are too large for us become the
// largest; it reports false then.
func (u *Unit) store(w *Wire, obj unsafe.Pointer, v []uint64) (fits bool) {
	fits = true
	if u.Kind == Quat {
		for i, f := range fromQuat(v) {
			u.storeFloat(unsafe.Add(obj, u.offsets[i]), f)
		}
		return true
	}
	for i := range v {
		p := unsafe.Add(obj, u.offsets[i])
		largest := ^uint64(0) >> (64 - u.size*8)
		switch u.Kind {
		case Step:
			n := unzigzag(v[i])
			if n < -stepLimit { // NaN
				n = 0
			}
			u.storeFloat(p, float64(n)*w.Step)
		case Angle:
			u.storeFloat(p, fromAngle(v[i], w.Bits))
		case Int:
			n, limit := unzigzag(v[i]), int64(1)<<(u.size*8-1)-1
			fits = fits && n >= -limit-1 && n <= limit
			storeUint(p, u.size, uint64(min(max(n, -limit-1), limit)))
		case Max:
			largest = min(largest, uint64(u.Max))
			fallthrough
		default:
			fits = fits && v[i] <= largest
			storeUint(p, u.size, min(v[i], largest))
		}
	}
	return fits
}

func (u *Unit) storeFloat(p unsafe.Pointer, v float64) {
	if u.size == 4 {
		*(*float32)(p) = float32(v)
	} else {
		*(*float64)(p) = v
	}
}

func loadInt(p unsafe.Pointer, size uintptr) int64 {
	switch size {
	case 1:
		return int64(*(*int8)(p))
	case 2:
		return int64(*(*int16)(p))
	case 4:
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

func loadUint(p unsafe.Pointer, size uintptr) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

func storeUint(p unsafe.Pointer, size uintptr, v uint64) {
	switch size {
	case 1:
		*(*uint8)(p) = uint8(v)
	case 2:
		*(*uint16)(p) = uint16(v)
	case 4:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

// pointer is the value of a blob unit as a pointer of its type, for reflection.
func (u *Unit) pointer(obj unsafe.Pointer) reflect.Value {
	return reflect.NewAt(u.typ, unsafe.Add(obj, u.offsets[0]))
}

// sliceHeader is how a slice lies in memory.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// writeMemory writes a blob unit straight from an object. That it fits is for Check to say.
func (u *Unit) writeMemory(w *bitio.Writer, obj unsafe.Pointer) {
	p := unsafe.Add(obj, u.offsets[0])
	switch u.Kind {
	case String:
		writeText(w, *(*string)(p))
	case Bytes:
		b := *(*[]byte)(p)
		w.WriteIntPacked(uint32(len(b)))
		w.WriteBytes(b)
	case Slice:
		h := *(*sliceHeader)(p)
		w.WriteIntPacked(uint32(h.len))
		for i := range h.len {
			u.elem.WriteValue(w, unsafe.Add(h.data, uintptr(i)*u.elem.Type.Size()))
		}
	case Pointer:
		to := *(*unsafe.Pointer)(p)
		if w.WriteBool(to != nil); to != nil {
			u.elem.WriteValue(w, to)
		}
	case Custom:
		if u.codec != nil {
			_ = u.codec.write(u, w, p) // it writes nothing then
			return
		}
		u.pointer(obj).Interface().(CustomValue).WriteNet(w)
	case Group:
		u.writeParts(w, obj)
	}
}

func writeText(w *bitio.Writer, s string) {
	w.WriteIntPacked(uint32(len(s)))
	w.WriteBytes(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// readAll reads all units of an element, or of a value whose strings and slices go into mem unless that is nil.
func (l *Layout) readAll(r *bitio.Reader, obj unsafe.Pointer, mem *Memory) {
	var v [MaxNumbers]uint64
	for i := range l.Units {
		u := &l.Units[i]
		if u.Kind.IsBlob() {
			u.readMemory(r, obj, mem)
			continue
		}
		u.read(r, v[:u.N])
		u.store(&u.Wire, obj, v[:u.N])
	}
}

// readMemory reads a blob unit straight into an object and reports whether it differs from what was there. A
// length is checked against what is left before anything is allocated.
func (u *Unit) readMemory(r *bitio.Reader, obj unsafe.Pointer, mem *Memory) (changed bool) {
	p := unsafe.Add(obj, u.offsets[0])
	switch u.Kind {
	case String:
		n, ok := readLength(r, u.Max, 8)
		if !ok {
			return false
		}
		if mem != nil {
			return readLent(r, (*string)(p), mem.bytes(n))
		}
		return readText(r, (*string)(p), n)
	case Bytes:
		n, ok := readLength(r, u.Max, 8)
		if ok {
			var b []byte
			if mem != nil {
				b = mem.bytes(n)
			} else {
				b = make([]byte, n)
			}
			r.ReadBytes(b)
			*(*[]byte)(p), changed = b, true
		}
	case Slice:
		n, ok := readLength(r, u.Max, u.elem.minBits)
		if ok {
			u.readSlice(r, obj, n, mem)
			changed = true
		}
	case Pointer:
		changed = u.readPointer(r, (*unsafe.Pointer)(p))
	case Custom:
		if u.codec != nil {
			differs, err := u.codec.read(u, r, p)
			if err != nil {
				r.Fail(err)
			}
			return differs
		}
		if err := u.pointer(obj).Interface().(CustomValue).ReadNet(r); err != nil {
			r.Fail(err)
		}
		changed = true
	case Group:
		u.readParts(r, obj)
		changed = true
	}
	return changed
}

// readText reads a string of n bytes. One that is there already isn't made anew.
func readText(r *bitio.Reader, s *string, n int) (changed bool) {
	var small [64]byte
	b := small[:min(n, len(small))]
	if n > len(small) {
		b = make([]byte, n)
	}
	r.ReadBytes(b)
	if !validText(r, b) || *s == string(b) {
		return false
	}
	*s = string(b)
	return true
}

// readLent reads a string into b, where it stays.
func readLent(r *bitio.Reader, s *string, b []byte) (changed bool) {
	r.ReadBytes(b)
	if !validText(r, b) || *s == string(b) {
		return false
	}
	*s = unsafe.String(unsafe.SliceData(b), len(b))
	return true
}

func validText(r *bitio.Reader, b []byte) bool {
	if !utf8.Valid(b) {
		r.Fail(fmt.Errorf("%w: a text that isn't UTF-8", ErrUnfit))
		return false
	}
	return true
}

// readLength reads how many elements follow, each of minBits at least.
func readLength(r *bitio.Reader, most uint32, minBits int) (int, bool) {
	n := uint64(r.ReadIntPacked())
	if r.Err() == nil && (n > uint64(most) || n*uint64(minBits) > uint64(r.Remaining())) {
		r.Fail(ErrLength)
	}
	return int(n), r.Err() == nil
}

// readSlice makes the slice n long, in mem or else in its old memory when that is enough, and reads its elements. Slices within
// them have memory of their own, strings are in mem.
func (u *Unit) readSlice(r *bitio.Reader, obj unsafe.Pointer, n int, mem *Memory) {
	h := (*sliceHeader)(unsafe.Add(obj, u.offsets[0]))
	if mem != nil && mem.depth == 0 {
		*h = mem.slice(u, n)
	} else {
		v := u.pointer(obj).Elem()
		if v.Cap() < n {
			v.Set(reflect.MakeSlice(u.typ, n, n))
		}
		v.SetLen(n)
	}
	if mem != nil {
		mem.depth++
		defer func() { mem.depth-- }()
	}
	for i := range n {
		u.elem.readAll(r, unsafe.Add(h.data, uintptr(i)*u.elem.Type.Size()), mem)
	}
}

// References appends the references in a unit of the value at obj to list.
func (l *Layout) References(list []netguid.GUID, obj unsafe.Pointer, unit int) []netguid.GUID {
	return l.Units[unit].References(list, obj, false)
}

// AllReferences appends those in all units.
func (l *Layout) AllReferences(list []netguid.GUID, obj unsafe.Pointer) []netguid.GUID {
	for m := l.Referring; m != 0; m &= m - 1 {
		list = l.References(list, obj, bits.TrailingZeros64(m))
	}
	return list
}

// Refers reports whether the unit is a reference, or a slice, pointer or fast array that leads to some.
func (u *Unit) Refers() bool {
	return u.Kind == Ref || u.refers || (u.Kind == Slice || u.Kind == Pointer) && u.elem.Referring != 0
}

// References appends the references in the unit, of the value at obj, to list; of a fast array with fresh, those of elements that were read last.
func (u *Unit) References(list []netguid.GUID, obj unsafe.Pointer, fresh bool) []netguid.GUID {
	p := unsafe.Add(obj, u.offsets[0])
	switch u.Kind {
	case Ref:
		list = append(list, *(*netguid.GUID)(p))
	case Slice:
		h := *(*sliceHeader)(p)
		for i := range h.len {
			list = u.elem.AllReferences(list, unsafe.Add(h.data, uintptr(i)*u.elem.Type.Size()))
		}
	case Pointer:
		if to := *(*unsafe.Pointer)(p); to != nil {
			list = u.elem.AllReferences(list, to)
		}
	case Fast:
		list = u.pointer(obj).Interface().(Referencer).NetReferences(list, fresh)
	}
	return list
}
