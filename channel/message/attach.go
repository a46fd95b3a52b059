package message

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// Attached is a Queue on a channel. It is the channel's handler; it sends messages in the channel's unreliable bunches
// and uses the connection's packet acks.
type Attached struct {
	*Queue
	// Failed is called when the peer broke a rule. The connection ends with err. May be nil.
	Failed func(err error)
	// Ended is called when the channel is closed, with the number of messages that the peer may never receive; see
	// Queue.Forget. Messages received before may still be taken by Receive. It isn't called for a queue whose channel never opened, as where the connection ended before:
	// what that was given is gone with the connection. May be nil.
	Ended func(unacked int)

	ch     *channel.Channel
	closed bool
	ticked bool          // Tick was called
	first  time.Duration // when it was first awaited; 0 before
	vainAt time.Duration // when Receive last had room to tell of and couldn't; -1 never
	buf    [1024]byte
	w      bitio.Writer // kept here, since what messages get would otherwise be allocated
}

// Attach returns a handler for a channel: give it to Table.Open, or return it from a Type's Accept. A queue has one channel, whatever is attached to it.
func Attach(q *Queue) *Attached {
	a := &Attached{Queue: q, vainAt: -1}
	q.cfg.Budget = min(q.cfg.Budget, len(a.buf)*8) // a message that fits the budget fits a packet
	q.cfg.MaxBits = min(q.cfg.MaxBits, len(a.buf)*8)
	return a
}

// errBlocksInUse refuses a channel for Blocks that have one.
var errBlocksInUse = errors.New("message: these blocks are the handler of another channel; give them this one when that is closed, and give each peer's blocks of their own")

// errInUse refuses a second channel for a handler: its state is that of one channel.
var errInUse = errors.New("message: it is, or was, the handler of another channel; give each channel, and each connection's, one of its own")

// Opened implements channel.Opener: it takes the channel and, at the end that opens it, sends the opening bunch. Until then nothing
// is sent: messages wait, up to Window of them. It is an error when the queue has, or had, another channel, when MaxMemory has no room for it, and when it was given a message before
// Attach that is too large for a packet.
func (a *Attached) Opened(ch *channel.Channel) error {
	if a.used {
		return errInUse
	}
	err := a.fitAll()
	if err == nil {
		err = ch.Hold(attachedCost + a.reserve())
	}
	if err != nil {
		if !ch.OpenedLocally() {
			a.failed(err)
		}
		return err
	}
	a.used = true
	a.ch, a.memory, a.single = ch, ch, ch.Conn().Table().SingleBits()
	if !ch.OpenedLocally() {
		return nil
	}
	var w bitio.Writer
	w.Reset(a.buf[:])
	if a.cfg.Mode == Ordered {
		w.WriteBool(false)
	}
	w.WriteInt(0, maxPerPacket+1)
	_, err = ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true, NoMerge: true})
	return err
}

// fitAll is an error when a message was queued that Attach's MaxBits refuses.
func (a *Attached) fitAll() error {
	if a.tooLarge(a.largest) {
		return fmt.Errorf("%w: one of %d bits was queued before Attach", ErrTooLarge, a.largest)
	}
	return nil
}

// Send is Queue.Send. It returns ErrClosed once the channel is closed, or its connection closes in order. When the queue was never given to
// a channel, or nothing was sent as Tick isn't called, ErrFull's text says so. It returns ErrFull, too, when messages have waited for 10 s
// on an open channel and Tick was never called. A queue whose channel isn't open yet gives no such hint before it is full.
func (a *Attached) Send(kind *Kind, m Message) error {
	if a.shut() {
		return ErrClosed
	}
	if err := a.unticked(); err != nil {
		return err
	}
	return a.sent(a.Queue.Send(kind, m))
}

// shut reports whether nothing more is sent: the channel or the connection is closed or about to be.
func (a *Attached) shut() bool { return a.closed || a.ch != nil && a.ch.Closing() }

// forgottenAfter is how long messages wait on an open channel until whoever sends more is told that Tick is forgotten.
const forgottenAfter = 10 * time.Second

// unticked is an error when messages have waited for so long and Tick was never called.
func (a *Attached) unticked() error {
	if a.ticked || a.ch == nil || a.Pending() == 0 || !a.ch.OpenAcked() {
		return nil
	}
	now := a.ch.Conn().Now()
	switch {
	case a.first == 0:
		a.first = max(now, 1)
	case now-a.first >= forgottenAfter:
		return fmt.Errorf("%w: messages have waited for %v; call Tick in each tick", ErrFull, forgottenAfter)
	}
	return nil
}

// sent is an error of Send, which tells whoever forgot to give the queue to a channel, or to call Tick.
func (a *Attached) sent(err error) error {
	switch {
	case !errors.Is(err, ErrFull):
	case a.ch == nil:
		return fmt.Errorf("%w: the queue has no channel; give it to Table.Open, or return it from Accept", err)
	case !a.ticked && a.ch.OpenAcked():
		return fmt.Errorf("%w: nothing was sent so far; call Tick in each tick", err)
	}
	return err
}

// SendEncoded is Queue.SendEncoded. It returns ErrClosed when Send does.
func (a *Attached) SendEncoded(e *Encoded) error {
	if a.shut() {
		return ErrClosed
	}
	if err := a.unticked(); err != nil {
		return err
	}
	return a.sent(a.Queue.SendEncoded(e))
}

// Receive is Queue.Receive. It also tells the peer of the room it makes, so an end that only receives needn't call Tick, if it calls this in each tick: what it tells may get lost.
func (a *Attached) Receive() (Message, *Kind) {
	if a.ch != nil && a.creditDue(false) {
		a.tellRoom(a.ch.Conn().Now())
	}
	return a.Queue.Receive()
}

// tellRoom tells the peer of room that Receive has made. Where nothing may be sent it waits for the next tick, as a Receive for each message of a flood would look through
// all that waits.
func (a *Attached) tellRoom(now time.Duration) {
	if now == a.vainAt {
		return
	}
	if a.Tick(now); a.creditDue(false) {
		a.vainAt = now
	}
}

// Tick writes what is due, in as many packets as the connection's bandwidth allows now. Call it once a
// tick, before TickFlush. Queues that are ticked before it go first, and may take all the bandwidth: tick urgent ones first. Blocks take what
// all queues leave.
func (a *Attached) Tick(now time.Duration) {
	a.ticked = true
	if a.ch == nil || a.ch.Closing() || !a.ch.OpenAcked() {
		return
	}
	for a.ch.Conn().IsNetReady() {
		a.w.Reset(a.buf[:])
		if a.Write(now, &a.w) == 0 {
			return
		}
		r, err := a.ch.SendBunch(&bunch.Out{Data: a.w.Bytes(), Bits: a.w.Len(), NoMerge: true, StayUnreliable: true})
		if err != nil {
			a.NotSent()
			return
		}
		a.Sent(r.Last)
	}
}

// Finish implements channel.Finisher: when the connection closes in order, messages queued before are still sent, and
// Ordered ones until they are acked. Send returns ErrClosed from then on.
func (a *Attached) Finish(ch *channel.Channel) bool {
	a.closed = true
	a.Tick(ch.Conn().Now())
	return a.Pending() == 0
}

// Answer implements channel.Answerer: a peer that closes as well is given room for what it has left.
func (a *Attached) Answer(ch *channel.Channel) { a.Finish(ch) }

// ReceivedBunch implements channel.Handler.
func (a *Attached) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	switch err := a.Read(&in.Data); {
	case err == nil:
	case errors.Is(err, channel.ErrMemory):
		ch.Refuse()
	default:
		a.failed(err)
		ch.Conn().Fail(err, false)
	}
}

// ReceivedLate implements channel.LateHandler: what the peer sent before it learned of our close has arrived for it, so it may be
// received here.
func (a *Attached) ReceivedLate(ch *channel.Channel, in *bunch.In) { a.ReceivedBunch(ch, in) }

func (a *Attached) failed(err error) {
	if a.Failed != nil {
		a.Failed(err)
	}
}

// ReceivedAck implements channel.Handler.
func (a *Attached) ReceivedAck(_ *channel.Channel, id int64) { a.Acked(id) }

// ReceivedNak implements channel.Handler.
func (a *Attached) ReceivedNak(_ *channel.Channel, id int64) { a.Lost(id) }

// Closed implements channel.Handler.
func (a *Attached) Closed(ch *channel.Channel, _ channel.CloseReason) {
	if ch != a.ch {
		return // Opened refused it
	}
	a.ch, a.memory, a.closed, a.flying = nil, nil, true, inFlight[int64]{}
	if unacked := a.Forget(); a.Ended != nil {
		a.Ended(unacked)
	}
}
