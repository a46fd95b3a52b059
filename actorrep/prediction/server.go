package prediction

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Server is the server's end of one player's prediction. Not safe for concurrent use.
type Server[S, I any] struct {
	Counters ServerCounters

	cfg   ServerConfig[S, I]
	state S
	at    time.Duration // the client's timestamp the state is of
	input I             // of the last move
	in    moves[S, I]
	guard guard

	number, echoed uint8   // of the last correction; of the last the client applied
	large          bool    // it is a large one
	apart          float64 // the Distance that it was made for
	ackDue         bool
	nextAck        time.Duration
	nextCorrection time.Duration
	corrected      time.Duration // a correction was sent last

	queue *queue[S, I] // with Model.Interval
	after continued    // see Continue

	began      bool          // a move came
	heard      time.Duration // last
	forcedTo   time.Duration // server time it was moved on to
	forced     time.Duration // of this silence
	simulated  int           // moves since the last tick
	simulating time.Duration // timestamp of the move that Simulate is called for
	waited     time.Duration // how long it waited for its tick
}

// NewServer returns a server with an initial state. With Model.Interval the first tick is the one after now; before time 0 there are none. It returns ErrConfig.
func NewServer[S, I any](cfg ServerConfig[S, I], initial S, now time.Duration) (*Server[S, I], error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	s := &Server[S, I]{cfg: cfg, state: initial,
		guard: guard{max: cfg.MaxDiscrepancy, drift: cfg.Drift, payBack: cfg.PayBack, last: now}}
	if interval := cfg.Model.Interval; interval > 0 {
		s.queue, s.at = &queue[S, I]{}, max(now-now%interval, 0)
	}
	return s, nil
}

// State is the true state. The game may change it, and should then call Correct. Without Correct the client is corrected when its next
// claim differs.
func (s *Server[S, I]) State() *S { return &s.state }

// Timestamp is the timestamp of the last simulated move, by the client's clock.
func (s *Server[S, I]) Timestamp() time.Duration { return s.at }

// Simulating may be called in Model.Simulate. It is the timestamp of the move being simulated, the same as at the client, except for moves
// that the server makes for a silent client.
func (s *Server[S, I]) Simulating() time.Duration { return s.simulating }

// Waited may be called in Model.Simulate. It is how long the move being simulated has waited for its tick, with Model.Interval; 0 for a
// move that the server makes for a silent client.
func (s *Server[S, I]) Waited() time.Duration { return s.waited }

// Discrepancy is how far the client's simulated time is ahead of the server's. paying reports that the client was too far ahead, and gets
// only a share of the time until d is 0.
func (s *Server[S, I]) Discrepancy() (d time.Duration, paying bool) {
	return s.guard.discrepancy, s.guard.paying
}

// Correct makes the next reply a correction. Call it when the game has changed the state, for example by a teleport.
func (s *Server[S, I]) Correct() {
	if s.number-s.echoed < 100 { // so that its number always is a later one than the client's
		s.number++
		s.apart = 0
	}
	s.nextCorrection = 0
}

// LastCorrection is the number of the newest correction, and the Model.Distance that it was made for. The distance is 0 when it was made by Correct,
// or because a move didn't come in time. The number is 0 before the first.
func (s *Server[S, I]) LastCorrection() (number uint8, apart float64) { return s.number, s.apart }

// Receive reads a message of moves and simulates the new ones; with Model.Interval it queues them for Tick. The error wraps ErrMessage; the
// message then has no effect.
func (s *Server[S, I]) Receive(now time.Duration, r *bitio.Reader) error {
	m := &s.in
	if err := m.read(&s.cfg.Model, r, s.at); err != nil {
		s.Counters.Malformed++
		return err
	}
	s.Counters.Messages++
	if s.queue != nil {
		s.enqueue(now)
		return nil
	}
	s.guard.elapse(now)
	fresh := false // the newest move is one that was simulated now
	for i := range m.n {
		fresh = s.move(now, &m.list[i])
	}
	if fresh {
		s.judge(m.applied)
	}
	return nil
}

func (s *Server[S, I]) move(now time.Duration, m *sentMove[I]) bool {
	if m.at <= s.at {
		s.Counters.Old++
		return false
	}
	if s.simulated >= s.cfg.MovesPerTick {
		s.Counters.Flooded++
		return false
	}
	s.simulating = m.at
	s.simulate(m.input, s.cfg.Model.delta(s.at, m.at))
	s.at, s.input = m.at, m.input
	s.began, s.heard, s.forcedTo, s.forced = true, now, 0, 0
	s.Counters.Moves++
	return true
}

func (s *Server[S, I]) simulate(in I, dt time.Duration) {
	granted, detected := s.guard.take(dt)
	if detected {
		s.Counters.SpeedHacks++
	}
	if granted < dt {
		s.Counters.Cut++
	}
	s.simulated++
	if granted > 0 {
		s.cfg.Model.Simulate(&s.state, in, granted)
	}
}

// judge compares the state with the client's claim, if the client had applied the last correction when it made the claim.
func (s *Server[S, I]) judge(applied uint8) {
	s.echoed = applied
	if s.waiting() {
		return
	}
	d := s.cfg.Model.Distance(&s.in.claim, &s.state)
	if d <= s.cfg.MaxError {
		s.Counters.Good++
		s.ackDue = true
		return
	}
	s.Counters.Bad++ // NaN too
	s.number++
	s.large, s.apart = !(d <= s.cfg.LargeError), d
}

// waiting reports whether the client may not have applied the last correction yet.
func (s *Server[S, I]) waiting() bool { return s.number != s.echoed }

// Tick simulates due ticks with Model.Interval, and moves a silent client on without it. Call it once a tick, after Receive of all messages
// that have arrived: otherwise a server that stood still would take its own pause for the client's silence.
func (s *Server[S, I]) Tick(now time.Duration) {
	if s.queue != nil {
		s.play(now)
		return
	}
	s.guard.elapse(now)
	s.simulated = 0
	if s.began && s.cfg.ForceAfter >= 0 {
		s.force(now)
	}
	s.guard.settle()
}

func (s *Server[S, I]) force(now time.Duration) {
	s.forcedTo = max(s.forcedTo, s.heard+s.cfg.ForceAfter)
	owed := min(now-s.forcedTo, s.cfg.MaxForced-s.forced).Truncate(time.Microsecond)
	for owed > 0 {
		dt := min(owed, s.cfg.Model.MaxDelta).Truncate(time.Microsecond)
		in := s.input
		if s.cfg.ForceInput != nil {
			in = s.cfg.ForceInput(in)
		}
		s.simulating = s.at + dt
		s.simulate(in, dt)
		s.at += dt
		s.forcedTo += dt
		s.forced += dt
		owed -= dt
		s.Counters.Forced++
	}
}

// NextDeadline is when Tick or Reply next has something to do. ok is false when neither has before the next message.
func (s *Server[S, I]) NextDeadline() (at time.Duration, ok bool) {
	consider := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if s.waiting() {
		consider(s.correctionAt())
	} else if s.ackDue {
		consider(s.nextAck)
	}
	switch {
	case s.queue != nil:
		consider(s.at + s.after.shift + s.cfg.Model.Interval)
	case s.began && s.cfg.ForceAfter >= 0 && s.forced < s.cfg.MaxForced:
		consider(max(s.forcedTo, s.heard+s.cfg.ForceAfter) + time.Microsecond)
	}
	return at, ok
}

// correctionAt is when the correction may be sent again: once a second while the client is silent.
func (s *Server[S, I]) correctionAt() time.Duration {
	if s.heard <= s.corrected && s.nextCorrection > 0 {
		return max(s.nextCorrection, s.corrected+time.Second)
	}
	return s.nextCorrection
}

// Reply writes an ack or a correction if one is due, and returns whether it wrote one. Call it each tick, after Tick. It returns ErrRoom
// when the reply doesn't fit w.
func (s *Server[S, I]) Reply(now time.Duration, w *bitio.Writer) (bool, error) {
	correction := s.waiting()
	if correction && now < s.correctionAt() || !correction && (!s.ackDue || now < s.nextAck) {
		return false, nil
	}
	mark := w.Mark()
	w.WriteBool(correction)
	w.WriteBits(micros(s.at), stampBits)
	if correction {
		w.WriteUint8(s.number)
		s.cfg.Model.WriteState(w, &s.state)
	}
	if err := w.Err(); err != nil {
		w.Rollback(mark)
		return false, fmt.Errorf("%w: a reply: %w", ErrRoom, err)
	}
	s.ackDue = false
	if !correction {
		s.Counters.Acks++
		s.nextAck = now + s.cfg.AckInterval
		return true, nil
	}
	s.Counters.Corrections++
	s.corrected = now
	s.nextCorrection = now + s.cfg.CorrectionInterval
	if s.large {
		s.nextCorrection = now + s.cfg.LargeInterval
	}
	return true, nil
}
