package fastarray

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
	"weak"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// ID identifies an element of a List; it is the same at both ends. 0 is none.
type ID uint32

// Bounds of a List.
const (
	// Max is the most elements of a List.
	Max = 2048
	// MaxBytes is the most bytes that all elements may take as encoded for sending.
	MaxBytes = 15000

	maxTombstones = 256
)

// Errors of a List.
var (
	// ErrFull: the list has no room for the element or its new value.
	ErrFull = errors.New("fastarray: the list is full: 2048 elements, and 15,000 bytes as they are sent")
	// ErrUnfit: the value can't be encoded. A number is out of its range, or a string or slice is longer than its cap.
	ErrUnfit = errors.New("fastarray: the value doesn't fit")
	// ErrNoElement: the id isn't in the list.
	ErrNoElement = errors.New("fastarray: no element with that id")
	// ErrMirror: the list mirrors a server's; change it there.
	ErrMirror = errors.New("fastarray: a client's list is changed by the server only")

	errFormat  = errors.New("fastarray: malformed update")
	errBase    = errors.New("fastarray: an update builds on a version that never came")
	errUnknown = errors.New("fastarray: an update changes an element that never came")
)

// List is a replicated list of elements of type T. The zero List is empty and ready to use. It belongs to its actor and
// must not be copied. Don't change slices in its elements in place: Set the element instead.
type List[T any] struct {
	// OnAdd, OnChange and OnRemove are called on a client, within World.Step. Set them in the actor's Init or Spawned.
	// May be nil.
	OnAdd    func(id ID, v T)
	OnChange func(id ID, old, now T)
	OnRemove func(id ID, old T)

	elem    *layout.Layout
	items   []item[T] // sorted by id
	version uint32
	changed func() // marks the actor
	mirror  bool   // a client's copy of a server's list
	work    *work[T]

	// on a server
	last      ID
	units     []uint32 // version of the last change, by element and unit
	gone      []tombstone
	forgotten uint32                // version of the newest removal that gone no longer has; 0 none
	bits      int                   // encoded size of all elements
	copied    weak.Pointer[List[T]] // what was copied last
	copiedAt  [2]uint32             // the versions of that, and of this list after it

	// on a client
	queue, told []note[T]
	cancelled   int            // cancelled notes in queue
	fresh       []ID           // elements that the last update set, if they may refer to actors
	refs        []netguid.GUID // of an element
}

type item[T any] struct {
	value   T
	id      ID
	born    uint32 // version that added it
	changed uint32 // newest version that changed it
	size    int32  // bits
	note    int32  // number of its note in the queue, from 1; 0 none
	seen    bool   // in the current update
}

type tombstone struct {
	id      ID
	version uint32
}

// work is scratch memory for comparing values.
type work[T any] struct {
	buf  []byte
	a, b bitio.Writer
	r    bitio.Reader
	now  T
}

// describe builds the elements' layout on first use.
func (l *List[T]) describe() (*layout.Layout, error) {
	if l.elem == nil {
		elem, err := layout.BuildValue(reflect.TypeFor[T]())
		if err != nil {
			return nil, err
		}
		l.elem, l.work = elem, &work[T]{buf: make([]byte, 64)}
	}
	return l.elem, nil
}

// Len is the number of elements.
func (l *List[T]) Len() int { return len(l.items) }

// All calls yield for each element in the order in which they were added. Elements may be added, set and removed
// meanwhile. One removed before its turn isn't yielded; one that is added is.
func (l *List[T]) All(yield func(id ID, v T) bool) {
	for i := 0; i < len(l.items); {
		id := l.items[i].id
		if !yield(id, l.items[i].value) {
			return
		}
		if i >= len(l.items) || l.items[i].id != id { // earlier elements were removed
			var there bool
			if i, there = l.find(id); !there {
				continue
			}
		}
		i++
	}
}

// Find returns the element with an id; ok is false when there is none.
func (l *List[T]) Find(id ID) (v T, ok bool) {
	if i, ok := l.find(id); ok {
		return l.items[i].value, true
	}
	return v, false
}

func (l *List[T]) find(id ID) (int, bool) { return search(l.items, id) }

func search[T any](items []item[T], id ID) (int, bool) {
	return slices.BinarySearchFunc(items, id, func(it item[T], id ID) int {
		switch {
		case it.id < id:
			return -1
		case it.id > id:
			return 1
		}
		return 0
	})
}

// Add adds an element at the end and returns its id. It returns ErrFull, ErrUnfit, or on a client ErrMirror.
func (l *List[T]) Add(v T) (ID, error) { return l.add(v, nil) }

// add is Add of a value that exact, unless it is nil, says comes to the client as it should.
func (l *List[T]) add(v T, exact func(sent *T) bool) (ID, error) {
	elem, err := l.describe()
	switch {
	case err != nil:
		return 0, err
	case l.mirror:
		return 0, ErrMirror
	case len(l.items) >= Max || l.last == 1<<32-1:
		return 0, ErrFull
	}
	size, err := l.size(v)
	if err != nil {
		return 0, err
	}
	if exact != nil {
		var none T
		k, sent := l.work, &l.work.now
		*sent = none
		k.r.Reset(k.a.Bytes(), size)
		if elem.ReadUnits(&k.r, unsafe.Pointer(sent), elem.All()); !exact(sent) {
			return 0, fmt.Errorf("%w: it comes as %v", ErrUnfit, *sent)
		}
	}
	gap := bitio.PackedBits(uint64(l.last + 1 - l.lastID() - 1))
	if l.bits+size+gap > MaxBytes*8 {
		return 0, ErrFull
	}
	l.last++
	l.bits += size + gap
	l.touch()
	l.items = append(l.items, item[T]{value: v, id: l.last, born: l.version, changed: l.version, size: int32(size)})
	for range elem.Units {
		l.units = append(l.units, l.version)
	}
	return l.last, nil
}

// lastID is the id of the last element, or 0.
func (l *List[T]) lastID() ID { return l.before(len(l.items)) }

// before is the id of the element before index i, or 0.
func (l *List[T]) before(i int) ID {
	if i == 0 {
		return 0
	}
	return l.items[i-1].id
}

// touch starts a new version.
func (l *List[T]) touch() {
	l.version++
	if l.version == 0 {
		l.version = 1
	}
	if l.changed != nil {
		l.changed()
	}
}

// Set gives an element a new value. The fields whose encoding differs are sent, and all slices and values with their own
// serializer. When nothing differs, nothing is sent. It returns ErrNoElement, ErrFull, ErrUnfit, or on a client
// ErrMirror.
func (l *List[T]) Set(id ID, v T) error {
	i, ok := l.find(id)
	switch {
	case l.mirror:
		return ErrMirror
	case !ok:
		return ErrNoElement
	}
	it := &l.items[i]
	size, err := l.size(v)
	if err != nil {
		return err
	}
	if l.bits+size-int(it.size) > MaxBytes*8 {
		return ErrFull
	}
	l.replace(i, v, size, l.differ(&it.value, &l.work.now, l.elem.All(), false))
	return nil
}

// replace gives the element at index i a new value, of which the units of m differ.
func (l *List[T]) replace(i int, v T, size int, m layout.Mask) {
	it := &l.items[i]
	it.value = v
	if m == 0 {
		return
	}
	l.touch()
	l.bits += size - int(it.size)
	it.size, it.changed = int32(size), l.version
	for u := range l.elem.Units {
		if m>>u&1 != 0 {
			l.units[i*len(l.elem.Units)+u] = l.version
		}
	}
}

// Remove removes an element. It returns ErrNoElement, or on a client ErrMirror.
func (l *List[T]) Remove(id ID) error {
	i, ok := l.find(id)
	switch {
	case l.mirror:
		return ErrMirror
	case !ok:
		return ErrNoElement
	}
	l.touch()
	l.bury(id)
	before, after := l.before(i), ID(0)
	l.bits -= int(l.items[i].size) + gapBits(before, id)
	if i+1 < len(l.items) {
		after = l.items[i+1].id
		l.bits += gapBits(before, after) - gapBits(id, after)
	}
	l.items = slices.Delete(l.items, i, i+1)
	n := len(l.elem.Units)
	l.units = slices.Delete(l.units, i*n, (i+1)*n)
	return nil
}

func gapBits(before, id ID) int { return bitio.PackedBits(uint64(id - before - 1)) }

// bury remembers a removal.
func (l *List[T]) bury(id ID) {
	if len(l.gone) == maxTombstones {
		const half = maxTombstones / 2
		l.forgotten = l.gone[half-1].version
		l.gone = append(l.gone[:0], l.gone[half:]...)
	}
	l.gone = append(l.gone, tombstone{id, l.version})
}

// Clear removes all elements. On a client it returns ErrMirror.
func (l *List[T]) Clear() error {
	if l.mirror {
		return ErrMirror
	}
	if len(l.items) == 0 {
		return nil
	}
	l.touch()
	l.gone, l.forgotten, l.bits = l.gone[:0], l.version, 0 // everyone gets the whole list, which is empty
	clear(l.items)
	l.items, l.units = l.items[:0], l.units[:0]
	return nil
}

// size is how many bits a value takes, or an error when it can't be sent. It leaves the value in work.now.
func (l *List[T]) size(v T) (int, error) {
	k := l.work
	k.now = v
	if err := l.elem.Check(unsafe.Pointer(&k.now), l.elem.All()); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	for {
		k.a.Reset(k.buf)
		l.elem.WriteUnits(&k.a, unsafe.Pointer(&k.now), l.elem.All())
		switch {
		case k.a.Err() == nil:
			return k.a.Len(), nil
		case !k.grow():
			return 0, ErrFull
		}
	}
}

// grow enlarges the buffer. It returns false when a value is larger than a list may be.
func (k *work[T]) grow() bool {
	if len(k.buf) >= 2*MaxBytes {
		return false
	}
	k.buf = make([]byte, min(2*len(k.buf), 2*MaxBytes))
	return true
}

// emptyBits is the encoded size of an empty slice.
const emptyBits = 8

// differ is the units of m whose encoding differs between two values. Slices that may share memory, and values with
// their own serializer, always count as different.
func (l *List[T]) differ(a, b *T, m layout.Mask, unshared bool) (changed layout.Mask) {
	for i := range l.elem.Units {
		bit := layout.Mask(1) << i
		if m&bit == 0 {
			continue
		}
		k := l.elem.Units[i].Kind
		same := k != layout.Custom && l.same(a, b, bit)
		if !unshared && (k == layout.Slice || k == layout.Bytes) {
			same = same && l.work.a.Len() <= emptyBits
		}
		if !same {
			changed |= bit
		}
	}
	return changed
}

// same reports whether units of two values are encoded as the same bits.
func (l *List[T]) same(x, y *T, m layout.Mask) bool {
	k := l.work
	for {
		half := len(k.buf) / 2
		k.a.Reset(k.buf[:half])
		k.b.Reset(k.buf[half:])
		l.elem.WriteUnits(&k.a, unsafe.Pointer(x), m)
		l.elem.WriteUnits(&k.b, unsafe.Pointer(y), m)
		switch {
		case k.a.Err() == nil && k.b.Err() == nil:
			return k.a.Len() == k.b.Len() && slices.Equal(k.a.Bytes(), k.b.Bytes())
		case !k.grow():
			return false
		}
	}
}
