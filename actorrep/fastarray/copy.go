package fastarray

import (
	"errors"
	"weak"
)

var errCopy = errors.New("fastarray: a list of another type")

// NetCopy is for package mesh: it makes the list what another one is, with the same ids. What differs is a change of this list, which has versions of its own.
func (l *List[T]) NetCopy(from any) error {
	src, ok := from.(*List[T])
	switch {
	case !ok:
		return errCopy
	case l.copied.Value() == src && l.copiedAt == [2]uint32{src.version, l.version}:
		return nil
	}
	if _, err := l.describe(); err != nil {
		return err
	}
	l.mirror, l.copied = false, weak.Pointer[List[T]]{}
	same := 0 // of src's elements, those that are here
	for i := 0; i < len(l.items); {
		switch id := l.items[i].id; {
		case same < len(src.items) && src.items[same].id < id: // elements are added at the end only: what comes behind it is added again
			for len(l.items) > i {
				if err := l.Remove(l.lastID()); err != nil {
					return err
				}
			}
		case same == len(src.items) || src.items[same].id > id:
			if err := l.Remove(id); err != nil {
				return err
			}
		default:
			size, err := l.size(src.items[same].value)
			if err != nil {
				return err
			}
			l.replace(i, src.items[same].value, size, l.differ(&l.items[i].value, &src.items[same].value, l.elem.All(), true)) // src puts new slices in place of old ones
			i++
			same++
		}
	}
	last := l.last
	for i := same; i < len(src.items); i++ {
		l.last = src.items[i].id - 1
		if _, err := l.Add(src.items[i].value); err != nil {
			return err
		}
	}
	l.last = max(l.last, last)
	l.copied, l.copiedAt = weak.Make(src), [2]uint32{src.version, l.version}
	return nil
}

// NetCopy makes the map what another one is.
func (m *Map[K, V]) NetCopy(from any) error {
	src, ok := from.(*Map[K, V])
	if !ok {
		return errCopy
	}
	was := m.list.version
	err := m.list.NetCopy(&src.list)
	if m.list.version != was {
		m.ids = nil
	}
	return err
}
