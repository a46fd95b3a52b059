package prediction

import "time"

// Carried is what another Server needs to continue with a player's moves: those after At.
type Carried[S, I any] struct {
	State S
	At    time.Duration // timestamp of the last move simulated
	Input I             // of that move
	Began bool          // there was one
	Early time.Duration // how early moves come
}

const (
	// holdFor is how long a Server that continues waits for the first message, and settleFor how long after that for missing moves.
	holdFor   = time.Second
	settleFor = 250 * time.Millisecond
	// maxGap is the longest time between the last tick there and Continue that is made up for.
	maxGap = 250 * time.Millisecond
	// guessEarly is how early moves are taken to come when it isn't known, in ticks.
	guessEarly = 4
)

// continued is a Server that continues another's moves. The zero value is one that doesn't.
type continued struct {
	shift time.Duration // this end's time minus that of the ticks
	least time.Duration // the least shift: a client that lies gains no more time
	until time.Duration // a tick waits for its move until then
	early time.Duration // how early moves came there
	heard bool          // a message has come
}

// Carry returns what another Server needs to continue, with Model.Interval. Only one of both may simulate from then on.
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

// Continue continues where another Server was, which may have had another clock: no tick is simulated twice or left out. Call it before the first message, with
// Model.Interval.
//
// Ticks wait until a message has come. Then their time is set so that moves come as early as they did there, and the ticks that are due are simulated, by the
// moves that have come. For a quarter of a second more a tick waits for its move. When no message comes within a second, time goes on from where it was, as
// for a silent player. Whatever the client says, time makes up for a quarter of a second between the other Server's last tick and Continue, at most.
func (s *Server[S, I]) Continue(c Carried[S, I], now time.Duration) {
	interval := s.cfg.Model.Interval
	s.state, s.at, s.input, s.began = c.State, c.At-c.At%interval, c.Input, c.Began
	s.after = continued{shift: now - s.at, least: now - s.at - maxGap, until: now + holdFor, early: min(max(c.Early, 0), maxQueued/2*interval)}
	s.Correct()
}

// ticking is the time of the ticks. Until the first message it stands still.
func (s *Server[S, I]) ticking(now time.Duration) time.Duration {
	if a := &s.after; now < a.until && !a.heard {
		a.shift = now - s.at
	}
	return now - s.after.shift
}

// settle sets the time of the ticks by the newest move of a message, for a while after Continue: by the one that has come earliest.
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
