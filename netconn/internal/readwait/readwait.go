// Package readwait is how sockets that are no system's wait in ReadBatch.
package readwait

import (
	"os"
	"sync"
	"time"
)

// Wait lets one goroutine at a time wait for what others bring.
type Wait struct {
	changed chan struct{} // the reader looks again
	mu      sync.Mutex
	until   time.Time
}

// New returns a Wait without a deadline.
func New() *Wait { return &Wait{changed: make(chan struct{}, 1)} }

// Signal makes the reader look again: something has arrived, or the socket has ended. Any goroutine may call it.
func (w *Wait) Signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// SetDeadline sets the deadline of Read, also of a call that is waiting. The zero time is none. Any goroutine may call it.
func (w *Wait) SetDeadline(t time.Time) {
	w.mu.Lock()
	w.until = t
	w.mu.Unlock()
	w.Signal()
}

// Deadline returns what SetDeadline was given last.
func (w *Wait) Deadline() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.until
}

// Read calls try until it returns a number above 0 or an error, and returns that. Between two calls it waits for Signal. At the deadline it returns
// os.ErrDeadlineExceeded, without a call of try if that has passed before.
func (w *Wait) Read(try func() (int, error)) (int, error) {
	for {
		until := w.Deadline()
		if !until.IsZero() && !time.Now().Before(until) {
			return 0, os.ErrDeadlineExceeded
		}
		if n, err := try(); n > 0 || err != nil {
			return n, err
		}
		w.wait(until)
	}
}

// wait returns at a Signal, or at the deadline.
func (w *Wait) wait(until time.Time) {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-w.changed:
	case <-timeout:
	}
}
