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

	ch  *channel.Channel
	buf [1024]byte
	w   bitio.Writer // kept here, since what messages get would otherwise be allocated
}

// Attach returns a handler for a channel: give it to Table.Open and then call Opened with the channel,
// or return it from a Type's Accept.
func Attach(q *Queue) *Attached { return &Attached{Queue: q} }

// Opened is the channel that the queue is on. The end that opens it calls it at once, which sends the
// opening bunch; at the other end the channel calls it.
func (a *Attached) Opened(ch *channel.Channel) error {
	a.ch = ch
	if !ch.OpenedLocally() {
		return nil
	}
	var w bitio.Writer
	w.Reset(a.buf[:])
	w.WriteInt(0, maxPerPacket+1)
	_, err := ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true, NoMerge: true})
	return err
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
	a.ch = ch
	if err := a.Read(&in.Data); err != nil {
		if a.Failed != nil {
			a.Failed(err)
		}
		ch.Conn().Fail(err, false)
	}
}

// ReceivedAck is the channel's.
func (a *Attached) ReceivedAck(_ *channel.Channel, id int64) { a.Acked(id) }

// ReceivedNak is the channel's.
func (a *Attached) ReceivedNak(_ *channel.Channel, id int64) { a.Lost(id) }

// Closed is the channel's.
func (a *Attached) Closed(*channel.Channel, channel.CloseReason) { a.ch = nil }
