// Package clock has the time of a lockstep machine, which goes on when its caller's clock is set back.
package clock

import "time"

// mostBack is how far a caller's times may be out of order: that of a packet and that of the frame in which it is read.
const mostBack = 250 * time.Millisecond

// Clock turns a caller's time into one that never goes back by more than a quarter of a second. The zero value is one whose caller counts from anywhere.
type Clock struct {
	last, ahead time.Duration // the newest time, and how far this clock is ahead of the caller's
	began       bool
}

// At is the time when the caller's clock says now.
func (c *Clock) At(now time.Duration) time.Duration {
	if now += c.ahead; c.began && now < c.last-mostBack { // it was set back
		c.ahead += c.last - now
		now = c.last
	}
	if !c.began || now > c.last {
		c.began, c.last = true, now
	}
	return now
}

// Outside is what the caller's clock says at a time.
func (c *Clock) Outside(at time.Duration) time.Duration { return at - c.ahead }
