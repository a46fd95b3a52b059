package fastarray

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// NetRead is for package actorrep: it applies an update. After an error the part before the error stays applied.
func (l *List[T]) NetRead(r *bitio.Reader) error {
	if _, err := l.describe(); err != nil {
		return err
	}
	l.mirror = true
	l.tidy()
	l.fresh = l.fresh[:0]
	all, version := r.ReadBool(), r.ReadIntPacked()
	if all {
		return l.readAll(r, version)
	}
	base := version - r.ReadIntPacked()
	switch {
	case r.Err() != nil:
		return r.Err()
	case newer(base, l.version):
		return errBase
	case !newer(version, l.version): // we have newer
		r.Skip(r.Remaining())
		return nil
	}
	return l.readSince(r, version)
}

// readAll reads a whole list.
func (l *List[T]) readAll(r *bitio.Reader, version uint32) error {
	for i := range l.items {
		l.items[i].seen = false
	}
	n, err := l.count(r, Max)
	if err == nil {
		err = l.elements(r, n, 2*Max, func() (layout.Mask, bool) { return l.elem.All(), true })
	}
	if err != nil {
		return err
	}
	l.drop(func(it *item[T]) bool { return !it.seen })
	l.version = version
	return nil
}

// readSince reads differences.
func (l *List[T]) readSince(r *bitio.Reader, version uint32) error {
	n, err := l.count(r, maxTombstones)
	if err != nil {
		return err
	}
	var went [maxTombstones]ID
	for i := range n {
		went[i] = ID(r.ReadIntPacked())
	}
	if r.Err() != nil {
		return r.Err()
	}
	l.dropIDs(went[:n])
	if n, err = l.count(r, Max); err != nil {
		return err
	}
	err = l.elements(r, n, Max, func() (layout.Mask, bool) {
		if r.ReadBool() {
			return l.elem.All(), true
		}
		return r.ReadBits(len(l.elem.Units)), false
	})
	if err == nil {
		l.version = version
	}
	return err
}

func (l *List[T]) count(r *bitio.Reader, most int) (int, error) {
	n := r.ReadIntPacked()
	if r.Err() == nil && (n > uint32(most) || int(n)*8 > r.Remaining()) {
		return 0, fmt.Errorf("%w: %d elements", errFormat, n)
	}
	return int(n), r.Err()
}

// elements reads n elements sorted by id, as long as the list has at most most. form returns which units follow, and
// whether the element may be new. New ones are appended, and sorted in when all are read.
func (l *List[T]) elements(r *bitio.Reader, n, most int, form func() (m layout.Mask, whole bool)) (err error) {
	old := len(l.items)
	last := uint64(0)
	for range n {
		last += uint64(r.ReadIntPacked()) + 1
		m, whole := form()
		i, ok := search(l.items[:old], ID(last))
		switch {
		case r.Err() != nil:
			err = r.Err()
		case last > 1<<32-1:
			err = errFormat
		case ok:
			err = l.readChange(r, i, m)
		case !whole:
			err = errUnknown
		case len(l.items) >= most:
			err = ErrFull
		default:
			err = l.readNew(r, ID(last))
		}
		if err != nil {
			break
		}
	}
	if len(l.items) > old && old > 0 && l.items[old].id < l.items[old-1].id {
		l.merge(old)
	}
	return err
}

// merge sorts the elements from an index on, which are sorted, in among those before it. Only a server that lies has them out of order.
func (l *List[T]) merge(old int) {
	late := slices.Clone(l.items[old:])
	to := len(l.items)
	for len(late) > 0 {
		to--
		if last := &late[len(late)-1]; old > 0 && l.items[old-1].id > last.id {
			old--
			l.items[to] = l.items[old]
		} else {
			l.items[to] = *last
			late = late[:len(late)-1]
		}
	}
}

// readChange reads units of the element at index i.
func (l *List[T]) readChange(r *bitio.Reader, i int, m layout.Mask) error {
	it := &l.items[i]
	it.seen = true
	was := it.value
	l.elem.ReadUnits(r, unsafe.Pointer(&it.value), m)
	if r.Err() != nil {
		it.value = was
		return r.Err()
	}
	if l.differ(&was, &it.value, m, true) != 0 {
		l.noteChanged(i, was)
		l.refresh(it.id)
	}
	return nil
}

// readNew reads a new element and appends it.
func (l *List[T]) readNew(r *bitio.Reader, id ID) error {
	l.items = append(l.items, item[T]{id: id, seen: true})
	i := len(l.items) - 1
	l.elem.ReadUnits(r, unsafe.Pointer(&l.items[i].value), l.elem.All())
	if r.Err() != nil {
		l.items = l.items[:i]
		return r.Err()
	}
	l.noteAdded(i)
	l.refresh(id)
	return nil
}

// dropIDs removes the elements with these ids, those of them that are there.
func (l *List[T]) dropIDs(ids []ID) {
	var found [maxTombstones]int
	n := 0
	for _, id := range ids {
		if i, ok := l.find(id); ok {
			found[n] = i
			n++
		}
	}
	if n == 0 {
		return
	}
	slices.Sort(found[:n])
	places := slices.Compact(found[:n])
	to := places[0]
	for k, i := range places {
		end := len(l.items)
		if k+1 < len(places) {
			end = places[k+1]
		}
		l.noteRemoved(i)
		to += copy(l.items[to:], l.items[i+1:end])
	}
	clear(l.items[to:])
	l.items = l.items[:to]
}

// drop removes the elements for which f returns true.
func (l *List[T]) drop(f func(it *item[T]) bool) {
	kept := l.items[:0]
	for i := range l.items {
		if f(&l.items[i]) {
			l.noteRemoved(i)
		} else {
			kept = append(kept, l.items[i])
		}
	}
	clear(l.items[len(kept):])
	l.items = kept
}

// NetKeep is for package migrate: it turns a client's copy into an original that a server may change.
func (l *List[T]) NetKeep() error {
	if _, err := l.describe(); err != nil {
		return err
	}
	l.units, l.gone, l.bits = l.units[:0], nil, 0
	for i := range l.items {
		it := &l.items[i]
		size, err := l.size(it.value)
		if err != nil {
			return err
		}
		l.bits += size + gapBits(l.before(i), it.id)
		it.size, it.born, it.changed, it.note = int32(size), l.version, l.version, 0
		for range l.elem.Units {
			l.units = append(l.units, l.version)
		}
	}
	if len(l.items) > Max || l.bits > MaxBytes*8 {
		return ErrFull
	}
	l.mirror, l.last, l.queue, l.cancelled, l.fresh, l.refs = false, l.lastID(), nil, 0, nil, nil
	l.forgotten = l.version // clients with an older version get the whole list
	return nil
}
