package prediction

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Receive handles a reply of the server. It applies a correction at once: the state becomes the server's, and all later moves are simulated
// again. After four corrections between two calls of Move or Send, only the newest further one is kept, and is applied in the next call. A
// reply that comes before the first move also sets where timestamps begin. The error wraps ErrMessage; the reply then has no effect.
func (c *Client[S, I]) Receive(now time.Duration, r *bitio.Reader) error {
	p := &c.in
	near, fresh := c.newest+maxAhead, c.newest == 0
	if fresh || c.cfg.Model.Interval > 0 { // a shared time goes on without this client
		near = time.Microsecond << (stampBits - 1) // half of what stamps count is left for the moves
	}
	if err := p.read(c.cfg.Model.ReadState, r, near); err != nil {
		c.Counters.Malformed++
		return err
	}
	c.heard = true
	if fresh { // another client was here before: this one goes on from there
		c.newest = p.at
		if c.cfg.Model.Interval == 0 {
			c.epoch = now - p.at
		}
	}
	if p.correction && c.corrections >= maxCorrections {
		c.Counters.Deferred++
		if c.lateAt < 0 || p.at >= c.late.at {
			c.late, c.lateAt = *p, now
		}
		return nil
	}
	c.apply(now)
	return nil
}

// apply applies the reply in c.in.
func (c *Client[S, I]) apply(now time.Duration) {
	p := &c.in
	if p.at < c.ackedAt {
		c.Counters.StaleReplies++
		return
	}
	c.ackedAt = p.at
	c.dropAcked()
	switch {
	case !p.correction:
		c.Counters.Acks++
	case int8(p.number-c.applied) <= 0:
		c.Counters.Repeated++
	default:
		c.corrections++
		c.correct(now)
	}
}

// undefer applies the correction that Receive kept for the next Move or Send.
func (c *Client[S, I]) undefer() {
	c.corrections = 0
	if at := c.lateAt; at >= 0 {
		c.in, c.lateAt = c.late, -1
		c.apply(at)
	}
}

// dropAcked drops the moves that the reply acks.
func (c *Client[S, I]) dropAcked() {
	for c.first < c.next {
		m := c.saved.Lookup(c.first)
		if m.at > c.in.at {
			return
		}
		c.ackedInput, c.haveAcked = m.input, true
		c.dropFirst()
	}
}

// correct sets the state to the server's and simulates all later moves again.
func (c *Client[S, I]) correct(now time.Duration) {
	c.before, c.state = c.state, c.in.state
	at, lapses := c.in.at, maxLapse
	c.again = true
	for i := c.first; i < c.next; i++ {
		m := c.saved.Lookup(i)
		lapses = c.lapse(at, m.at, lapses)
		c.simulating = m.at
		c.cfg.Model.Simulate(&c.state, m.input, c.cfg.Model.delta(at, m.at))
		m.after, at = c.state, m.at
	}
	c.newest = at
	c.applied = c.in.number
	c.combinable = false
	replayed := c.Unacked()
	c.Counters.Corrections++
	c.Counters.Replayed += uint64(replayed)
	if c.cfg.Position != nil {
		c.smoother.Jump(now, c.cfg.Position(&c.before), c.cfg.Position(&c.state))
	}
	if c.cfg.Corrected != nil {
		age := now - c.epoch - c.in.at
		if c.cfg.Model.Interval > 0 {
			age = c.newest - c.in.at
		}
		c.cfg.Corrected(Correction{At: c.in.at, Age: age,
			Size: c.cfg.Model.Distance(&c.before, &c.state), Replayed: replayed})
	}
}
