package nettrace

// Ring is a Sink that keeps the last events. Use it in the goroutine that ticks the connection.
type Ring struct {
	events []Event
	total  uint64
}

// NewRing returns a ring for the last n events. n below 1 counts as 1.
func NewRing(n int) *Ring { return &Ring{events: make([]Event, max(1, n))} }

// Trace implements Sink.
func (r *Ring) Trace(e *Event) {
	r.events[r.total%uint64(len(r.events))] = *e
	r.total++
}

// Len returns the number of events in the ring.
func (r *Ring) Len() int { return int(min(r.total, uint64(len(r.events)))) }

// Total returns the number of events traced so far.
func (r *Ring) Total() uint64 { return r.total }

// All calls yield for each event in the ring, oldest first.
func (r *Ring) All(yield func(Event) bool) {
	for i := r.total - uint64(r.Len()); i < r.total; i++ {
		if !yield(r.events[i%uint64(len(r.events))]) {
			return
		}
	}
}
