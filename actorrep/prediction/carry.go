package prediction

import "time"

// Carried is what another Server needs to simulate a player's further moves, those after At.
type Carried[S, I any] struct {
	State S
	At    time.Duration // timestamp of the last move simulated
	Input I             // of that move
	Began bool          // there was one
	Early time.Duration // how early moves come
}

const (
	// holdFor is how long a Server waits for the first message after Continue. settleFor is how long ticks wait for missing moves after that
	// message.
	holdFor   = time.Second
	settleFor = 250 * time.Millisecond
	// maxGap bounds the time between the other server's last tick and Continue that is simulated.
	maxGap = 250 * time.Millisecond
	// guessEarly is how early moves are assumed to come, in ticks, when the other server didn't know.
	guessEarly = 4
)

// continued is the state of a Server after Continue. It is zero in all others.
type continued struct {
	shift time.Duration // this end's time minus that of the ticks
	least time.Duration // the least shift: a client that lies gains no more time
	until time.Duration // a tick waits for its move until then
	early time.Duration // how early moves came there
	heard bool          // a message has come
}

// Carry returns what another Server needs to continue. It is for models with an Interval. Only one of the two servers may simulate from
// then on.
func (s *Server[S, I]) Carry() Carried[S, I] {
	c := Carried[S, I]{State: s.state, At: s.at, Input: s.input, Began: s.began}
	if q := s.queue; q != nil {
		for _, a := range q.arrivals {
			if a.at > q.newest-tightSpan*s.cfg.Model.Interval && a.at > 0 {
				c.Early = max(c.Early, a.early)
			}
		}
	}
	if c.Early == 0 {
		c.Early = guessEarly * s.cfg.Model.Interval
	}
	return c
}

// Continue goes on where another Server stopped, so that no tick is simulated twice or left out. The two servers' clocks may differ. Call
// it before the first message. It is for models with an Interval.
//
// No tick is simulated until the first message has come. Then the ticks' time is set so that moves are as early as at the other server, and
// the due ticks are simulated with the moves that have come. For another quarter of a second each tick waits for its move. When no message
// comes within a second, time goes on from the other server's last tick, as for a silent player. Of the time between that tick and
// Continue, at most a quarter of a second is simulated, whatever the client sends.
func (s *Server[S, I]) Continue(c Carried[S, I], now time.Duration) {
	interval := s.cfg.Model.Interval
	s.state, s.at, s.input, s.began = c.State, c.At-c.At%interval, c.Input, c.Began
	s.after = continued{shift: now - s.at, least: now - s.at - maxGap, until: now + holdFor, early: min(max(c.Early, 0), maxQueued/2*interval)}
	s.Correct()
}

// ticking returns the time of the ticks at now. It stands still until the first message.
func (s *Server[S, I]) ticking(now time.Duration) time.Duration {
	if a := &s.after; now < a.until && !a.heard {
		a.shift = now - s.at
	}
	return now - s.after.shift
}

// settle sets the time of the ticks so that the move that has come earliest, of those in the first settleFor after Continue, is as early as
// at the other server.
func (s *Server[S, I]) settle(now time.Duration) time.Duration {
	a, newest := &s.after, s.in.list[s.in.n-1].at
	if now >= a.until || newest <= s.at || newest > s.at+maxQueued*s.cfg.Model.Interval {
		return s.ticking(now)
	}
	shift := max(now-max(newest-a.early, s.at), a.least)
	if !a.heard {
		a.heard, a.until, a.shift = true, now+settleFor, shift
	}
	a.shift = min(a.shift, shift)
	s.queue.stood = max(s.queue.stood, newest) // how early these come says nothing of the path
	return now - a.shift
}
