package fastarray

// note is a callback to make for an element.
type note[T any] struct {
	kind noteKind
	id   ID
	old  T
}

type noteKind uint8

const (
	nothing noteKind = iota // cancelled: added and removed again
	added
	changed
	removed
)

func (l *List[T]) silent() bool { return l.OnAdd == nil && l.OnChange == nil && l.OnRemove == nil }

func (l *List[T]) noteAdded(i int) {
	if !l.silent() {
		l.queue = append(l.queue, note[T]{kind: added, id: l.items[i].id})
		l.items[i].note = int32(len(l.queue))
	}
}

// noteChanged notes the value before the first change since the last callbacks.
func (l *List[T]) noteChanged(i int, old T) {
	if !l.silent() && l.items[i].note == 0 {
		l.queue = append(l.queue, note[T]{kind: changed, id: l.items[i].id, old: old})
		l.items[i].note = int32(len(l.queue))
	}
}

func (l *List[T]) noteRemoved(i int) {
	it := &l.items[i]
	switch {
	case l.silent():
	case it.note == 0:
		l.queue = append(l.queue, note[T]{kind: removed, id: it.id, old: it.value})
	case l.queue[it.note-1].kind == added:
		l.queue[it.note-1] = note[T]{}
		l.cancelled++
	default:
		l.queue[it.note-1].kind = removed
	}
}

// tidy drops cancelled notes, so that the queue stays within one note for each element that the game knows and one for
// each that the list has.
func (l *List[T]) tidy() {
	if l.cancelled < Max {
		return
	}
	kept := l.queue[:0]
	for _, n := range l.queue {
		if n.kind == nothing {
			continue
		}
		kept = append(kept, n)
		if n.kind != removed {
			if i, ok := l.find(n.id); ok {
				l.items[i].note = int32(len(kept))
			}
		}
	}
	clear(l.queue[len(kept):])
	l.queue, l.cancelled = kept, 0
}

// NetTell is for package actorrep. It makes the callbacks for everything since the last time, in order of arrival, or
// drops them. Only a client's list has it called. It is a mirror from then on, also before anything has come.
func (l *List[T]) NetTell(tell bool) {
	l.mirror = true
	if len(l.queue) == 0 {
		return
	}
	l.told, l.queue, l.cancelled = l.queue, l.told[:0], 0
	for i := range l.items {
		l.items[i].note = 0
	}
	for i := range l.told {
		if tell {
			l.tell(&l.told[i])
		}
		l.told[i] = note[T]{}
	}
}

func (l *List[T]) tell(n *note[T]) {
	now, ok := l.Find(n.id)
	switch {
	case n.kind == added && l.OnAdd != nil && ok:
		l.OnAdd(n.id, now)
	case n.kind == changed && l.OnChange != nil && ok:
		l.OnChange(n.id, n.old, now)
	case n.kind == removed && l.OnRemove != nil:
		l.OnRemove(n.id, n.old)
	}
}
