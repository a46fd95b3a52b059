package nettrace

// Ring keeps the last events. It belongs to the goroutine that ticks what it traces.
type Ring struct {
	events []Event
	total  uint64
}

// NewRing returns a ring of the last n events, at least one.
func NewRing(n int) *Ring { return &Ring{events: make([]Event, max(1, n))} }

// Trace is Sink's.
func (r *Ring) Trace(e *Event) {
	r.events[r.total%uint64(len(r.events))] = *e
	r.total++
}

// Len is the number of events kept.
func (r *Ring) Len() int { return int(min(r.total, uint64(len(r.events)))) }

// Total is the number of events there were.
func (r *Ring) Total() uint64 { return r.total }

// All calls yield for each event kept, the oldest first.
func (r *Ring) All(yield func(Event) bool) {
	for i := r.total - uint64(r.Len()); i < r.total; i++ {
		if !yield(r.events[i%uint64(len(r.events))]) {
			return
		}
	}
}
