package prediction

import (
	"time"
)

// maxQueued is how many ticks ahead of the server's a move may come.
const maxQueued = 64

// queued is a move whose tick isn't simulated yet.
type queued[S, I any] struct {
	at      time.Duration // its tick; that of another one when there is none
	came    time.Duration
	input   I
	claim   S
	applied uint8 // number of the last correction that the claim knows
	claimed bool
}

// queue has the moves of one player whose ticks aren't simulated yet, with Model.Interval. The move of a tick is at the low bits of the
// tick's number.
type queue[S, I any] struct {
	moves    [maxQueued]queued[S, I]
	arrivals [maxQueued]arrival // of the last ones, by tick too
	newest   time.Duration      // tick of a move
	burst    time.Duration      // the ticks up to that one whose moves the client made in one frame, as far as messages show it
	more     bool               // the last message was full of moves of which none had come: the next one's are of the same frame
	ahead    arrival            // the newest move, if it came too far ahead of its tick to wait for it
	now      time.Duration      // of this end's last frame
	frame    time.Duration      // the length of its frames, smoothed
	stood    time.Duration      // this end stood still until then: how early moves for ticks before came says nothing of the path
	skipped  time.Duration      // the last tick that Skip leaves out
	judged   time.Duration      // the last tick with a claim, or when the first message came
}

const (
	// standstill is the shortest frame, and unusual how many times as long as the ones before it must be, after which this end stood still.
	standstill = 200 * time.Millisecond
	unusual    = 4
)

// skip skips ticks after this end stood still for longer than it can make up for.
func (s *Server[S, I]) skip(now time.Duration) {
	q := s.queue
	if dt := now - q.now; dt > 0 {
		if q.now > 0 && dt > standstill && dt > unusual*q.frame {
			q.stood = now
		}
		q.now = now
		q.frame += (dt - q.frame) / 8
	}
	if most := time.Duration(s.cfg.MovesPerTick) * s.cfg.Model.Interval; now-s.at > most+s.cfg.Model.Interval {
		s.at = now - now%s.cfg.Model.Interval - most
	}
}

// arrival says when the first copy of a tick's move arrived.
type arrival struct {
	at    time.Duration
	early time.Duration // before its tick was simulated; negative after
}

func (q *queue[S, I]) index(at, interval time.Duration) int { return int(at / interval % maxQueued) }

// enqueue adds the moves of a message to the queue.
func (s *Server[S, I]) enqueue(now time.Duration) {
	q, m, interval := s.queue, &s.in, s.cfg.Model.Interval
	s.heard = now
	now = s.settle(now)
	s.skip(now)
	if s.Counters.Messages == 1 {
		q.judged = s.at
	}
	s.ackDue = true // it tells the client how early they came
	waits := false  // the newest move, whose claim the message has
	before, fresh := q.newest, 0
	for i := range m.n {
		at := m.list[i].at
		waits = false
		switch {
		case at%interval != 0:
			s.Counters.Ahead++
			continue
		case at > s.at+maxQueued*interval:
			s.Counters.Ahead++
			q.ahead = arrival{at, at - now}
			continue
		}
		q.ahead = arrival{}
		if at > q.stood && q.arrivals[q.index(at, interval)].at < at {
			early := max(at-now, 0)
			if at <= s.at {
				early = min(at-now, 0)
				s.Counters.Late++
			}
			q.arrivals[q.index(at, interval)] = arrival{at, early}
			q.newest = max(q.newest, at)
			fresh++
		}
		if at <= s.at {
			s.Counters.Old++
			continue
		}
		w := &q.moves[q.index(at, interval)]
		if w.at != at {
			*w = queued[S, I]{at: at, came: now, input: m.list[i].input}
		}
		if i == m.n-1 && !w.claimed {
			w.claim, w.applied, w.claimed = m.claim, m.applied, true
		}
		waits = true
	}
	if !q.more {
		q.burst = 0
	}
	q.burst, q.more = min(q.burst+q.newest-before, maxQueued*interval), fresh == maxMessageMoves
	if !waits && s.waiting() && m.applied == s.number && s.at-q.judged > tightSpan*interval {
		s.echoed = s.number // no claim that the server compares says so
		s.number++          // a client drops a correction that it has applied
	}
}

// play simulates the ticks that are due.
func (s *Server[S, I]) play(now time.Duration) {
	interval := s.cfg.Model.Interval
	waits := now < s.after.until
	now = s.ticking(now)
	s.skip(now)
	for s.at+interval <= now && !(waits && !s.has(s.at+interval)) {
		s.at += interval
		s.tick(now)
	}
}

// Skip skips the ticks up to a time: Tick simulates only those of them for which a move has come. It is for models with an Interval, in a
// game that doesn't simulate its world for these ticks, for example after a pause.
func (s *Server[S, I]) Skip(to time.Duration) {
	if s.queue != nil {
		s.queue.skipped = max(s.queue.skipped, to-s.after.shift)
	}
}

// has reports whether a tick's move has arrived.
func (s *Server[S, I]) has(at time.Duration) bool {
	return s.queue.moves[s.queue.index(at, s.cfg.Model.Interval)].at == at
}

// tick simulates one tick: with the player's move; with ForceInput when none has arrived; with the zero input before the first move, and
// after MaxForced without one.
func (s *Server[S, I]) tick(now time.Duration) {
	s.simulating, s.waited = s.at, 0
	w := &s.queue.moves[s.queue.index(s.at, s.cfg.Model.Interval)]
	switch {
	case w.at == s.at:
		s.began = true
		s.Counters.Moves++
		s.waited = max(now-w.came, 0)
		s.Counters.Waited += micros(s.waited)
		s.input, s.forced = w.input, 0
		s.cfg.Model.Simulate(&s.state, w.input, s.cfg.Model.Interval)
		if w.claimed {
			s.in.claim, s.queue.judged = w.claim, s.at
			s.judge(w.applied)
		}
	default:
		if s.began {
			s.Counters.Missed++
		}
		if s.at > s.queue.skipped {
			s.cfg.Model.Simulate(&s.state, s.missing(), s.cfg.Model.Interval)
			if !s.waiting() {
				s.number++ // the player has simulated it otherwise
				s.large, s.apart = false, 0
			}
		}
	}
}

// missing returns the input for a tick for which no move has arrived.
func (s *Server[S, I]) missing() (in I) {
	if !s.began || s.forced >= s.cfg.MaxForced {
		s.Counters.Idle++
		return in
	}
	s.Counters.Forced++
	s.forced += s.cfg.Model.Interval
	if s.cfg.ForceInput != nil {
		return s.cfg.ForceInput(s.input)
	}
	return s.input
}

// Tightest is, among the last moves, the one that came closest to its tick: the tick's time, and how early the move came; negative is late.
// Send it to the client, whose clock should run ahead of the server's only as far as needed. While moves are refused because they come too
// early, it is the newest of those. It is for models with an Interval. ok is false when no move has come.
func (s *Server[S, I]) Tightest() (at, early time.Duration, ok bool) {
	if s.queue == nil {
		return 0, 0, false
	}
	if a := s.queue.ahead; a.at > 0 {
		return a.at, a.early, true
	}
	from := s.queue.newest - max(tightSpan*s.cfg.Model.Interval, s.queue.burst)
	for _, a := range s.queue.arrivals {
		if a.at > from && a.at > 0 && (!ok || a.early < early) {
			at, early, ok = a.at, a.early, true
		}
	}
	return at, early, ok
}

// tightSpan is how many ticks Tightest looks back on: some replies' worth, since they may be lost. When the client makes more in one frame it looks back on all of these:
// the first of them come last. After as many without a claim to compare, a client whose moves are
// refused is corrected again.
const tightSpan = 24
