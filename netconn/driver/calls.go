package driver

import "slices"

// calls is functions that wait to be run, in order. Where one panics, it is over, and those behind it are run first the next time.
type calls struct {
	waiting, running []func()
	next             int // of running
}

func (q *calls) add(f func()) { q.waiting = append(q.waiting, f) }

// begin has all that wait run.
func (q *calls) begin() {
	q.running = append(slices.Delete(q.running, 0, q.next), q.waiting...)
	q.next = 0
	clear(q.waiting)
	q.waiting = q.waiting[:0]
}

// take returns the next one to run, or nil.
func (q *calls) take() func() {
	if q.next == len(q.running) {
		return nil
	}
	f := q.running[q.next]
	q.running[q.next] = nil
	q.next++
	return f
}
