package fastarray

import (
	"slices"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// NetRefers is for package layout: it reports whether elements may refer to actors.
func (l *List[T]) NetRefers() bool {
	elem, err := l.describe()
	return err == nil && elem.Referring != 0
}

// NetReferences is for package actorrep: it appends the references of all elements to list, or with fresh those of the elements that the last update set.
func (l *List[T]) NetReferences(list []netguid.GUID, fresh bool) []netguid.GUID {
	if !fresh {
		for i := range l.items {
			list = l.references(list, i)
		}
		return list
	}
	for _, id := range l.fresh {
		if i, ok := l.find(id); ok {
			list = l.references(list, i)
		}
	}
	return list
}

// references appends those of the element at index i.
func (l *List[T]) references(list []netguid.GUID, i int) []netguid.GUID {
	return l.elem.AllReferences(list, unsafe.Pointer(&l.items[i].value))
}

// refresh notes that the current update sets an element.
func (l *List[T]) refresh(id ID) {
	if l.elem.Referring != 0 {
		l.fresh = append(l.fresh, id)
	}
}

// NetArrived is for package actorrep: it notes a change of the elements that refer to an actor, which has come.
func (l *List[T]) NetArrived(id netguid.GUID) (any bool) {
	for i := range l.items {
		if l.refs = l.references(l.refs[:0], i); slices.Contains(l.refs, id) {
			l.noteChanged(i, l.items[i].value)
			any = true
		}
	}
	return any
}

// NetListens is for package actorrep: it reports whether the game is told of changed elements.
func (l *List[T]) NetListens() bool { return l.OnChange != nil }
