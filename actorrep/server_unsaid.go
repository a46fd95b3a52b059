package actorrep

// unsaidActors is how many actors a Step looks at.
const unsaidActors = 32

// lookForUnsaid tells the observer, for the next actors in turn, which units the game has set without the world knowing: those of a sleeping
// actor without FlushDormancy, of a Manual class without MarkDirty, of a field with a setter without that.
func (w *World) lookForUnsaid() {
	for range min(unsaidActors, len(w.actors)) {
		b := w.nextActor(&w.looked)
		if b == nil || b.tornOff || b.rep.marked { // marked are compared when it is their turn
			continue
		}
		l := b.class.layout
		m := l.All()
		if b.needsPolling() {
			m = l.Pushed // the others are compared by themselves
		}
		w.observer.Unsaid(b.guid, b.class.name, l, l.Differs(b.rep.shadow, b.ptr, m), b.dormant)
	}
}

// nextActor moves on to the next place among the actors, and from the last to the first. It returns the actor there; nil when there is none.
func (w *World) nextActor(at *int) *Base {
	if *at++; *at >= len(w.actors) {
		*at = 0
	}
	if len(w.actors) == 0 {
		return nil
	}
	return w.actors[*at]
}
