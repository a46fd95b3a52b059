package layout

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"unicode/utf8"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// ErrUnfit is a value that can't be sent as it is: a number out of its range, a text or list over its cap=, a text that
// isn't UTF-8, or over 8 KiB of bytes, elements or a value's own serializer.
var ErrUnfit = errors.New("layout: the value doesn't fit its field")

// stepLimit is the most steps from 0 that a Step counts.
const stepLimit = 1 << 52

// maxText bounds a String, in bytes, whatever its cap.
const maxText = 60000

// fits reports whether the numbers of a unit, as they were loaded, are what the object has.
func (u *Unit) fits(v []uint64) bool {
	switch u.Kind {
	case Quat:
		return [4]uint64(v) != [4]uint64{notQuat}
	case Max:
		for _, x := range v {
			if x > uint64(u.Max) {
				return false
			}
		}
	case Angle:
		return or(v) < 1<<(u.Bits&63)
	case Step:
		for _, x := range v {
			if x >= 2*stepLimit-1 {
				return false
			}
		}
	}
	return true
}

// Check says why the values of m at obj can't be sent as they are; nil when they can. It names the first that can't.
func (l *Layout) Check(obj unsafe.Pointer, m Mask) error {
	for ; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		if err := u.check(obj); err != nil {
			if u.Path == "" {
				return err
			}
			return fmt.Errorf("%s: %w", u.Path, err)
		}
	}
	return nil
}

func (u *Unit) check(obj unsafe.Pointer) error {
	p := unsafe.Add(obj, u.offsets[0])
	switch u.Kind {
	case String:
		s := *(*string)(p)
		if len(s) > min(int(u.Max), maxText) {
			return fmt.Errorf("%w: %d bytes of text, the most are %d", ErrUnfit, len(s), min(int(u.Max), maxText))
		}
		if !utf8.ValidString(s) {
			return fmt.Errorf("%w: the text isn't UTF-8", ErrUnfit)
		}
		return nil
	case Bytes:
		return u.checkLength(len(*(*[]byte)(p)))
	case Slice:
		return u.checkSlice((*sliceHeader)(p))
	case Pointer:
		if to := *(*unsafe.Pointer)(p); to != nil {
			return u.elem.Check(to, u.elem.All())
		}
		return nil
	case Custom:
		if u.codec != nil {
			if err := u.codec.write(u, nil, p); err != nil {
				return fmt.Errorf("%w: %w", ErrUnfit, err)
			}
		}
		return nil
	case Fast: // by what they write
		return nil
	case Group:
		for i := range u.Parts {
			if err := u.Parts[i].check(obj); err != nil {
				return fmt.Errorf("%s: %w", u.Parts[i].Path, err)
			}
		}
		return nil
	}
	var v [MaxNumbers]uint64
	if u.load(obj, v[:u.N]); !u.fits(v[:u.N]) {
		return fmt.Errorf("%w: %s", ErrUnfit, u.misfit(obj))
	}
	return nil
}

// misfit says which of the numbers of a unit doesn't fit, and what would.
func (u *Unit) misfit(obj unsafe.Pointer) string {
	for _, offset := range u.offsets[:u.N] {
		x := reflect.NewAt(u.typ, unsafe.Add(obj, offset)).Elem()
		switch {
		case u.Kind == Max && x.Uint() > uint64(u.Max):
			return fmt.Sprintf("%d is more than max=%d", x.Uint(), u.Max)
		case u.Kind == Max:
		case math.IsNaN(x.Float()) || math.IsInf(x.Float(), 0):
			return fmt.Sprintf("%v isn't a finite number", x.Float())
		case u.Kind == Step && math.Abs(x.Float()) >= stepLimit*u.Step:
			return fmt.Sprintf("%v is more than 2^52 steps of q=%v", x.Float(), u.Step)
		}
	}
	return fmt.Sprintf("a number out of range for %v", u.Kind)
}

func (u *Unit) checkLength(n int) error {
	if n > int(u.Max) {
		return fmt.Errorf("%w: %d elements, the most are %d", ErrUnfit, n, u.Max)
	}
	return nil
}

func (u *Unit) checkSlice(h *sliceHeader) error {
	if err := u.checkLength(h.len); err != nil {
		return err
	}
	for i := range h.len {
		if err := u.elem.Check(unsafe.Add(h.data, uintptr(i)*u.elem.Type.Size()), u.elem.All()); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// writeChecked writes a blob unit straight from an object, or says why it doesn't fit.
func (u *Unit) writeChecked(w *bitio.Writer, obj unsafe.Pointer) error {
	if err := u.check(obj); err != nil {
		return err
	}
	if u.writeMemory(w, obj); w.Err() != nil {
		return fmt.Errorf("%w: over %d bytes", ErrUnfit, maxBlob)
	}
	return nil
}

// Unfit says why the value of a unit can't be sent as it is; nil when it can.
func (l *Layout) Unfit(obj unsafe.Pointer, unit int) error {
	u := &l.Units[unit]
	if !u.Kind.IsBlob() || u.Kind == String || u.Kind == Group {
		return u.check(obj)
	}
	if u.Kind == Fast {
		return nil
	}
	return u.writeChecked(l.blobWriter(), obj)
}

// blobWriter is an empty writer for a value that isn't numbers.
func (l *Layout) blobWriter() *bitio.Writer {
	if l.scratch == nil {
		l.scratch = make([]byte, maxBlob)
	}
	l.writer.Reset(l.scratch) // here, as it would escape
	return &l.writer
}
