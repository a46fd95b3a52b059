package fastarray

import (
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// newer reports whether version a is later than b; versions may wrap around.
func newer(a, b uint32) bool { return int32(a-b) > 0 }

// NetBind is for package actorrep: it sets what to call after each change.
func (l *List[T]) NetBind(changed func()) { l.changed = changed }

// NetForm is for package layout: it hashes the elements' form, which both ends must have alike.
func (l *List[T]) NetForm() (uint32, error) {
	elem, err := l.describe()
	if err != nil {
		return 0, err
	}
	return elem.Hash(), nil
}

// NetKey is the list's version.
func (l *List[T]) NetKey() uint32 { return l.version }

// NetWrite is for package actorrep: it writes the differences from a version, or the whole list when that is shorter or
// the version is too old.
func (l *List[T]) NetWrite(w *bitio.Writer, base uint32) {
	if base == 0 || newer(base, l.version) || l.forgotten != 0 && newer(l.forgotten, base) {
		l.writeAll(w)
		return
	}
	mark, start := w.Mark(), w.Len()
	l.writeSince(w, base)
	if w.Err() != nil || w.Len()-start > l.wholeBits() {
		w.Rollback(mark)
		l.writeAll(w)
	}
}

// wholeBits is the size of a whole list.
func (l *List[T]) wholeBits() int {
	return 1 + bitio.PackedBits(uint64(l.version)) + bitio.PackedBits(uint64(len(l.items))) + l.bits
}

func (l *List[T]) writeAll(w *bitio.Writer) {
	w.WriteBool(true)
	w.WriteIntPacked(l.version)
	w.WriteIntPacked(uint32(len(l.items)))
	last := ID(0)
	for i := range l.items {
		it := &l.items[i]
		w.WriteIntPacked(uint32(it.id - last - 1))
		last = it.id
		l.elem.WriteUnits(w, unsafe.Pointer(&it.value), l.elem.All())
	}
}

func (l *List[T]) writeSince(w *bitio.Writer, base uint32) {
	w.WriteBool(false)
	w.WriteIntPacked(l.version)
	w.WriteIntPacked(l.version - base)
	from := len(l.gone)
	for from > 0 && newer(l.gone[from-1].version, base) {
		from--
	}
	w.WriteIntPacked(uint32(len(l.gone) - from))
	for _, t := range l.gone[from:] {
		w.WriteIntPacked(uint32(t.id))
	}
	n := 0
	for i := range l.items {
		if newer(l.items[i].changed, base) {
			n++
		}
	}
	w.WriteIntPacked(uint32(n))
	last := ID(0)
	for i := range l.items {
		it := &l.items[i]
		if !newer(it.changed, base) {
			continue
		}
		w.WriteIntPacked(uint32(it.id - last - 1))
		last = it.id
		m := l.since(i, base)
		w.WriteBool(newer(it.born, base))
		if !newer(it.born, base) {
			w.WriteBits(m, len(l.elem.Units))
		}
		l.elem.WriteUnits(w, unsafe.Pointer(&it.value), m)
	}
}

// since is the units of an element that changed after a version.
func (l *List[T]) since(i int, base uint32) (m layout.Mask) {
	if newer(l.items[i].born, base) {
		return l.elem.All()
	}
	n := len(l.elem.Units)
	for u, version := range l.units[i*n : (i+1)*n] {
		if newer(version, base) {
			m |= 1 << u
		}
	}
	return m
}
