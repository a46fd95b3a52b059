package layout

import (
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// FastArray is a collection that sends what changed of it since a version that the peer is known to have. Package
// fastarray has one for elements of any type.
type FastArray interface {
	// NetKey is the version; it changes with every change, and is 0 while nothing ever was in it. On a client it is
	// that of the server's which came last.
	NetKey() uint32
	// NetWrite writes all that came, changed or went since version base; 0 is before everything. It changes nothing, as
	// it may run for many connections at once, and writes 16 KiB at most.
	NetWrite(w *bitio.Writer, base uint32)
	// NetRead takes that in, and reads all of it unless it returns an error.
	NetRead(r *bitio.Reader) error
}

// Marker may be implemented by a FastArray that says itself when it has changed, so that it needn't be looked at.
type Marker interface {
	// NetBind gives the list what to call after each change; nil ends that.
	NetBind(changed func())
}

// Teller may be implemented by a FastArray that tells the game what came.
type Teller interface {
	// NetTell is called within a client's Step: tell what came since the last time, or just forget it.
	NetTell(tell bool)
}

// Referencer may be implemented by a FastArray whose elements may refer to actors.
type Referencer interface {
	// NetRefers reports whether elements of its type may. It is asked of a zero value.
	NetRefers() bool
	// NetReferences appends the references of its elements to list; with fresh only of those that the last NetRead set.
	NetReferences(list []netguid.GUID, fresh bool) []netguid.GUID
	// NetArrived has the next NetTell tell of the elements that refer to an actor, which has come, and reports whether there are any.
	NetArrived(id netguid.GUID) bool
	// NetListens reports whether NetTell would tell of them.
	NetListens() bool
}

// Keeper may be implemented by a FastArray that a server takes over from another one.
type Keeper interface {
	// NetKeep makes what NetRead took in the list of this end, which may change it; or says why it can't be one.
	NetKeep() error
}

// Copier may be implemented by a FastArray that a server mirrors from another one's, with versions of its own.
type Copier interface {
	// NetCopy makes the list what another one of its type is, and changes what differs only.
	NetCopy(from any) error
}

// Formed may be implemented by a FastArray or a CustomValue: both ends must have the same form of it. It is asked of a
// zero value.
type Formed interface {
	// NetForm is a number that differs when the bits written mean something else, or why the type can't be sent.
	NetForm() (uint32, error)
}

// form is what a zero value of a type with its own serializer says of itself.
func form(t reflect.Type) (uint32, error) {
	if f, ok := reflect.New(t).Interface().(Formed); ok {
		return f.NetForm()
	}
	return 0, nil
}

// Tell has the fast arrays among the units of m tell what came, or forget it.
func (l *Layout) Tell(obj unsafe.Pointer, m Mask, tell bool) {
	for m &= l.Fasts; m != 0; m &= m - 1 {
		if t, ok := l.Units[bits.TrailingZeros64(m)].pointer(obj).Interface().(Teller); ok {
			t.NetTell(tell)
		}
	}
}

// Arrived has the fast arrays among the units of m tell of the elements that refer to an actor, which has come, and reports whether there are any.
func (l *Layout) Arrived(obj unsafe.Pointer, m Mask, id netguid.GUID) (any bool) {
	for m &= l.Fasts & l.Referring; m != 0; m &= m - 1 {
		if l.Units[bits.TrailingZeros64(m)].pointer(obj).Interface().(Referencer).NetArrived(id) {
			any = true
		}
	}
	return any
}

// Listens reports whether the fast arrays among the units of m would tell of that.
func (l *Layout) Listens(obj unsafe.Pointer, m Mask) bool {
	for m &= l.Fasts & l.Referring; m != 0; m &= m - 1 {
		if l.Units[bits.TrailingZeros64(m)].pointer(obj).Interface().(Referencer).NetListens() {
			return true
		}
	}
	return false
}

// Keep makes the fast arrays of the value at obj, which were read, this end's own.
func (l *Layout) Keep(obj unsafe.Pointer) error {
	for m := l.Fasts; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		k, ok := u.pointer(obj).Interface().(Keeper)
		if !ok {
			return fmt.Errorf("%w: %s, a fast array without NetKeep", ErrKind, u.Path)
		}
		if err := k.NetKeep(); err != nil {
			return fmt.Errorf("%s: %w", u.Path, err)
		}
	}
	return nil
}

// Copies reports whether all fast arrays can be copied by CopyFasts.
func (l *Layout) Copies() bool {
	for m := l.Fasts; m != 0; m &= m - 1 {
		if !reflect.PointerTo(l.Units[bits.TrailingZeros64(m)].typ).Implements(reflect.TypeFor[Copier]()) {
			return false
		}
	}
	return true
}

// CopyFasts makes the fast arrays of the value at to what those of the value at from are.
func (l *Layout) CopyFasts(to, from unsafe.Pointer) error {
	for m := l.Fasts; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		if err := u.pointer(to).Interface().(Copier).NetCopy(u.pointer(from).Interface()); err != nil {
			return fmt.Errorf("%s: %w", u.Path, err)
		}
	}
	return nil
}

// WriteUnits writes the units of m straight from the value at obj.
func (l *Layout) WriteUnits(w *bitio.Writer, obj unsafe.Pointer, m Mask) {
	var v [MaxNumbers]uint64
	for ; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		if u.Kind.IsBlob() {
			u.writeMemory(w, obj)
			continue
		}
		u.load(obj, v[:u.N])
		u.write(w, v[:u.N])
	}
}

// ReadUnits reads them into the value at obj. Slices get new memory: copies of the old value keep theirs.
func (l *Layout) ReadUnits(r *bitio.Reader, obj unsafe.Pointer, m Mask) {
	var v [MaxNumbers]uint64
	for ; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		if u.Kind.IsBlob() {
			if u.Kind == Slice {
				*(*sliceHeader)(unsafe.Add(obj, u.offsets[0])) = sliceHeader{}
			}
			u.readMemory(r, obj, nil)
			continue
		}
		u.read(r, v[:u.N])
		u.store(&u.Wire, obj, v[:u.N])
	}
}
