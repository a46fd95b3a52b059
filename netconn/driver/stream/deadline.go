package stream

import (
	"sync"
	"time"
)

// deadline is a moment that waiters on a cond are woken at. The cond's lock guards it.
type deadline struct {
	timer   *time.Timer
	setting int // counts set, so that a late timer of an older one is told
	passed  bool
}

// set replaces the moment; the zero time is never.
func (d *deadline) set(t time.Time, wake *sync.Cond) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.setting++
	wait := time.Until(t)
	d.passed = !t.IsZero() && wait <= 0
	wake.Broadcast()
	if t.IsZero() || d.passed {
		return
	}
	setting := d.setting
	d.timer = time.AfterFunc(wait, func() {
		wake.L.Lock()
		defer wake.L.Unlock()
		if d.setting == setting {
			d.passed = true
			wake.Broadcast()
		}
	})
}

// stop leaves no timer behind.
func (d *deadline) stop() {
	d.setting++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
