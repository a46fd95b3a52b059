package prediction

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/ring"
)

// savedMove is a move that the server hasn't acknowledged.
type savedMove[S, I any] struct {
	at    time.Duration // timestamp: the end of the move
	input I
	after S // the state then
}

// Client is the player's end. Not safe for concurrent use.
//
// Invariant: the moves first <= i < next are in saved, in the order of their timestamps,
// and those from unsent on weren't sent yet; state is acknowledged state plus all of them.
type Client[S, I any] struct {
	Counters ClientCounters

	cfg    ClientConfig[S, I]
	epoch  time.Duration // of timestamps
	state  S
	newest time.Duration // timestamp the state is of

	saved               *ring.Ring[savedMove[S, I]]
	first, unsent, next int64
	starts              [maxRedundancy]int64 // the first unsent move of each of the last messages
	messages            int

	simulating time.Duration // timestamp of the move that Simulate is called for
	again      bool          // it was before

	combinable bool          // the newest move may still become longer
	start      S             // the state before it
	startAt    time.Duration // and its timestamp
	before     S             // scratch: the state before a correction
	frame      I             // scratch: the input of a frame
	nextSend   time.Duration
	rest       bool          // the last message didn't hold all unsent moves: the next is due at once
	ackedAt    time.Duration // newest timestamp of a reply
	ackedInput I
	haveAcked  bool
	behind     int64 // moves before this one are sent until they are acknowledged, see Follow
	heard      bool  // a reply has come
	applied    uint8 // number of the last correction
	out        moves[S, I]
	in         reply[S]
	smoother   *Smoother

	corrections int           // that were applied since the last Move or Send
	late        reply[S]      // a correction that waits for the next
	lateAt      time.Duration // when it came; negative when there is none
}

// NewClient returns a client with an initial state, whose timestamps begin at now. Make it once the server has its Server: messages that
// arrive before are lost. It returns ErrConfig.
func NewClient[S, I any](cfg ClientConfig[S, I], initial S, now time.Duration) (*Client[S, I], error) {
	c := &Client[S, I]{}
	if err := c.Reset(cfg, initial, now); err != nil {
		return nil, err
	}
	return c, nil
}

// Reset makes the client as NewClient does, in the memory that it has. After an error nothing has changed.
func (c *Client[S, I]) Reset(cfg ClientConfig[S, I], initial S, now time.Duration) error {
	if err := cfg.fill(); err != nil {
		return err
	}
	begin := now
	sm, err := NewSmoother(cfg.Smoothing)
	if err != nil {
		return err
	}
	saved, size := c.saved, 1<<bits.Len(uint(cfg.MaxMoves-1))
	if saved == nil || saved.Size() != size {
		saved = ring.New[savedMove[S, I]](size)
	} else {
		saved.Reset()
	}
	if cfg.Model.Interval > 0 {
		now = 0 // timestamps are the shared time
	}
	*c = Client[S, I]{cfg: cfg, epoch: now, state: initial, saved: saved, smoother: sm, nextSend: begin, lateAt: -1}
	return nil
}

// State is the predicted state. It is only to be read, and changes with Move and Receive.
func (c *Client[S, I]) State() *S { return &c.state }

// Unacked is the number of saved moves.
func (c *Client[S, I]) Unacked() int { return int(c.next - c.first) }

// Timestamp is the newest move's. The server answers it a round trip later.
func (c *Client[S, I]) Timestamp() time.Duration { return c.newest }

// Simulating may be called in Model.Simulate. at is the timestamp of the move being simulated, the same as at the server. again reports
// that the move was simulated before, so that its sounds and effects were played already.
func (c *Client[S, I]) Simulating() (at time.Duration, again bool) { return c.simulating, c.again }

// Acked is the timestamp of the newest move that the server answered.
func (c *Client[S, I]) Acked() time.Duration { return c.ackedAt }

// Offset is what to add to ClientConfig.Position when drawing, so that a correction isn't visible as a jump. It fades to zero.
func (c *Client[S, I]) Offset(now time.Duration) [3]float64 { return c.smoother.Offset(now) }

// Move simulates the input from the last move up to now, and saves the move. Call it once a frame. It does nothing within the same
// microsecond, and while the server's replies are ahead of this client's clock. With Model.Interval now is the time of the tick.
func (c *Client[S, I]) Move(now time.Duration, in I) {
	c.undefer()
	at := (now - c.epoch).Truncate(time.Microsecond)
	if at <= c.newest {
		return
	}
	if c.combine(at, in) {
		return
	}
	if c.Unacked() == c.cfg.MaxMoves {
		c.dropFirst()
		c.Counters.Forgotten++
	}
	c.again = false
	c.lapse(c.newest, at, maxLapse)
	c.start, c.startAt, c.combinable = c.state, c.newest, true
	c.simulating = at
	c.cfg.Model.Simulate(&c.state, in, c.cfg.Model.delta(c.newest, at))
	*c.saved.Insert(c.next) = savedMove[S, I]{at: at, input: in, after: c.state}
	c.next++
	c.newest = at
	c.Counters.Moves++
}

// maxLapse bounds the ticks without a move that a client simulates between two moves, and in a replay. A server accepts no move that is
// further ahead.
const maxLapse = maxQueued

// lapse simulates the ticks between two moves with the zero input, as the server does when it has no moves for them. It returns how many
// more ticks it may simulate.
func (c *Client[S, I]) lapse(from, to time.Duration, most int) int {
	interval := c.cfg.Model.Interval
	if interval == 0 || !c.heard {
		return most
	}
	var none I
	for at := from + interval; at < to && most > 0; at += interval {
		c.simulating = at
		c.cfg.Model.Simulate(&c.state, none, interval)
		most--
	}
	return most
}

// combine merges the input into the newest move, if that is unsent and CanCombine allows it. It reports whether it did.
func (c *Client[S, I]) combine(at time.Duration, in I) bool {
	if c.cfg.CanCombine == nil || !c.combinable || at-c.startAt > c.cfg.Model.MaxDelta {
		return false
	}
	last := c.saved.Lookup(c.next - 1)
	c.frame = in
	if last == nil || !c.cfg.CanCombine(&c.start, &last.input, &c.frame) {
		return false
	}
	c.state = c.start
	c.simulating, c.again = at, true
	c.cfg.Model.Simulate(&c.state, in, at-c.startAt)
	last.at, last.input, last.after = at, in, c.state
	c.newest = at
	c.Counters.Combined++
	return true
}

// Rewind takes back the moves after a timestamp, as if they had never been made: for a model with an Interval, when the shared time was too far ahead. If all earlier
// moves are acked the state stays as it is, until the server corrects it. Offset hides the jump.
func (c *Client[S, I]) Rewind(now, to time.Duration) {
	if c.newest <= to {
		return
	}
	for ; c.next > c.first && c.saved.Lookup(c.next-1).at > to; c.next-- {
		c.saved.Remove(c.next - 1)
	}
	c.newest, c.combinable = to, false
	c.unsent, c.behind, c.messages = min(c.unsent, c.next), min(c.behind, c.next), 0
	if c.first == c.next {
		return
	}
	c.before, c.state = c.state, c.saved.Lookup(c.next-1).after
	if p := c.cfg.Position; p != nil {
		c.smoother.Jump(now, p(&c.before), p(&c.state))
	}
}

func (c *Client[S, I]) dropFirst() {
	c.saved.Remove(c.first)
	c.first++
	c.unsent = max(c.unsent, c.first)
}

// Follow takes over the moves of another client, whose player has gone to this client's server. It is for models with an Interval. Call it
// when the first state has arrived from a Server that was given the other client's moves by Continue. The moves after that state are
// simulated again here, and sent until they are acked. Offset hides the jump. When Follow returns true, don't use from any more. It returns
// false, and does nothing, when the state's timestamp isn't one of from's.
func (c *Client[S, I]) Follow(now time.Duration, from *Client[S, I]) bool {
	if !c.heard || c.first != c.next || from.first == from.next || from.newest < c.newest || from.saved.Lookup(from.first).at-c.cfg.Model.Interval > c.newest {
		return false
	}
	for i := from.first; i < from.next; i++ {
		m := from.saved.Lookup(i)
		c.Move(m.at, m.input)
	}
	c.behind = c.next
	if p := c.cfg.Position; p != nil {
		was, off := p(&from.state), from.Offset(now)
		is, own := p(&c.state), c.Offset(now)
		for i := range was {
			was[i] += off[i]
			is[i] += own[i]
		}
		c.smoother.Jump(now, was, is)
	}
	return true
}

// NextDeadline is when Send has the next message to write; it is past when the last one didn't hold all moves. ok is false when there are no unsent moves.
func (c *Client[S, I]) NextDeadline() (at time.Duration, ok bool) {
	at = c.nextSend
	if c.rest {
		at -= c.cfg.SendInterval
	}
	return at, c.unsent < c.next
}

// Send writes a message with up to 16 unsent moves, and repeats of earlier ones where w has room. It returns true when it wrote one: there were
// unsent moves, and the last message is at least SendInterval ago or didn't hold them all. It returns ErrRoom when the unsent moves alone don't fit. After a long
// frame, and after Follow, several messages are due at once: call it until it returns false.
func (c *Client[S, I]) Send(now time.Duration, w *bitio.Writer) (bool, error) {
	c.undefer()
	switch again := c.first < c.behind; {
	case again && now >= c.nextSend:
		c.unsent, c.messages = c.first, 0
	case c.unsent == c.next || now < c.nextSend && !again && !c.rest:
		return false, nil
	}
	upTo := min(c.next, c.unsent+maxMessageMoves)
	mark := w.Mark()
	again := c.collect(upTo, c.cfg.Redundancy)
	c.out.write(&c.cfg.Model, w, c.ackedAt)
	if w.Err() != nil && again > 0 {
		w.Rollback(mark)
		again = c.collect(upTo, -1)
		c.out.write(&c.cfg.Model, w, c.ackedAt)
	}
	if err := w.Err(); err != nil {
		w.Rollback(mark)
		return false, fmt.Errorf("%w: %d moves and a claim: %w", ErrRoom, c.out.n, err)
	}
	c.starts[c.messages%maxRedundancy] = c.unsent
	c.messages++
	c.unsent = upTo
	c.rest = c.unsent < c.next
	c.combinable = c.combinable && c.unsent < c.next
	c.nextSend = now + c.cfg.SendInterval
	c.Counters.Messages++
	c.Counters.SentAgain += uint64(again)
	return true, nil
}

// sentBefore returns the first move that is in one of the last n messages.
func (c *Client[S, I]) sentBefore(n int) int64 {
	if n = min(n, c.messages); n <= 0 {
		return c.unsent
	}
	return c.starts[(c.messages-n)%maxRedundancy]
}

// collect makes a message of the moves up to upTo. It repeats as many sent moves as redundancy and the message allow and, unless redundancy
// is negative, the oldest important move before these. It returns the number of repeated moves.
func (c *Client[S, I]) collect(upTo int64, redundancy int) (again int) {
	m := &c.out
	m.applied, m.n = c.applied, 0
	room := maxMessageMoves - int(upTo-c.unsent)
	from := max(c.first, c.sentBefore(redundancy), c.unsent-int64(room))
	if room > int(c.unsent-from) && redundancy >= 0 {
		if i := c.oldestImportant(from); i >= 0 {
			c.add(i)
		}
	}
	for i := from; i < upTo; i++ {
		c.add(i)
	}
	m.claim = c.saved.Lookup(upTo - 1).after
	return m.n - int(upTo-c.unsent)
}

func (c *Client[S, I]) add(i int64) {
	s := c.saved.Lookup(i)
	c.out.list[c.out.n] = sentMove[I]{at: s.at, input: s.input}
	c.out.n++
}

func (c *Client[S, I]) oldestImportant(before int64) int64 {
	if c.cfg.Important == nil || !c.haveAcked {
		return -1
	}
	for i := c.first; i < before; i++ {
		if c.cfg.Important(&c.ackedInput, &c.saved.Lookup(i).input) {
			return i
		}
	}
	return -1
}
