package message

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// Attached is a Queue on a channel: a channel.Handler that rides the channel's unreliable bunches and
// the packet acks of its connection.
type Attached struct {
	*Queue
	// Failed is called with what a peer broke; the connection has then been told to end.
	Failed func(err error)
	// Ended is called when the channel is closed, with the number of messages that aren't known to have arrived,
	// which are forgotten. What has arrived may still be received. May be nil.
	Ended func(unacked int)

	ch     *channel.Channel
	closed bool
	buf    [1024]byte
	w      bitio.Writer // kept here, since what messages get would otherwise be allocated
}

// Attach returns a handler for a channel: give it to Table.Open and then call Opened with the channel,
// or return it from a Type's Accept.
func Attach(q *Queue) *Attached {
	a := &Attached{Queue: q}
	q.cfg.Budget = min(q.cfg.Budget, len(a.buf)*8) // a message that fits the budget fits a packet
	return a
}

// Opened is the channel that the queue is on. The end that opens it calls it at once, which sends the
// opening bunch; the other end needn't.
func (a *Attached) Opened(ch *channel.Channel) error {
	a.ch = ch
	if !ch.OpenedLocally() {
		return nil
	}
	var w bitio.Writer
	w.Reset(a.buf[:])
	if a.cfg.Mode == Ordered {
		w.WriteBool(false)
	}
	w.WriteInt(0, maxPerPacket+1)
	_, err := ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true, NoMerge: true})
	return err
}

// Send is the queue's, with ErrClosed once the channel is closed.
func (a *Attached) Send(kind *Kind, m Message) error {
	if a.closed {
		return ErrClosed
	}
	return a.Queue.Send(kind, m)
}

// SendEncoded is the queue's, with ErrClosed once the channel is closed.
func (a *Attached) SendEncoded(e *Encoded) error {
	if a.closed {
		return ErrClosed
	}
	return a.Queue.SendEncoded(e)
}

// Receive is the queue's. It tells the peer of the room it makes, so an end that only receives need not call Tick.
func (a *Attached) Receive() (Message, *Kind) {
	if a.ch != nil && a.creditDue(false) {
		a.Tick(a.ch.Conn().Now())
	}
	return a.Queue.Receive()
}

// Tick writes what is due, in as many packets as the connection's bandwidth allows now. Call it once a
// tick, before TickFlush.
func (a *Attached) Tick(now time.Duration) {
	if a.ch == nil || a.ch.Closing() || !a.ch.OpenAcked() {
		return
	}
	for a.ch.Conn().IsNetReady() {
		a.w.Reset(a.buf[:])
		if a.Write(now, &a.w) == 0 {
			return
		}
		r, err := a.ch.SendBunch(&bunch.Out{Data: a.w.Bytes(), Bits: a.w.Len(), NoMerge: true})
		if err != nil {
			a.NotSent()
			return
		}
		a.Sent(r.Last)
	}
}

// ReceivedBunch is the channel's.
func (a *Attached) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	if err := a.receive(ch, in); err != nil {
		if a.Failed != nil {
			a.Failed(err)
		}
		ch.Conn().Fail(err, false)
	}
}

func (a *Attached) receive(ch *channel.Channel, in *bunch.In) error {
	a.ch = ch
	if a.memory == nil {
		a.memory = ch
		if !ch.OpenedLocally() && !a.hold(attachedCost) {
			return channel.ErrMemory
		}
	}
	return a.Read(&in.Data)
}

// ReceivedAck is the channel's.
func (a *Attached) ReceivedAck(_ *channel.Channel, id int64) { a.Acked(id) }

// ReceivedNak is the channel's.
func (a *Attached) ReceivedNak(_ *channel.Channel, id int64) { a.Lost(id) }

// Closed is the channel's.
func (a *Attached) Closed(*channel.Channel, channel.CloseReason) {
	a.ch, a.memory, a.closed = nil, nil, true
	if unacked := a.Forget(); a.Ended != nil {
		a.Ended(unacked)
	}
}
