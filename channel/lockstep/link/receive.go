package link

import (
	"time"

	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Receive takes a datagram from the peer and calls Handler.Message for each message that is next in order. An error means
// that the datagram was refused; except for a counter nothing has changed.
func (l *Link) Receive(now time.Duration, p []byte) error {
	d, err := parse(p, l.crcInit)
	if err != nil {
		l.refuse(err)
		return err
	}
	ack := seqnum.U16.Expand(d.ack, l.base-1)
	if ack >= l.unsent {
		l.stats.RefusedAckAhead++
		return ErrAckAhead
	}
	l.stats.DatagramsReceived++
	l.stats.BytesReceived += uint64(len(p))
	now = l.clock.At(now)
	l.lastHeard = now
	l.acked(now, ack)
	switch d.kind {
	case kindPing:
		l.answer, _ = d.next()
		l.wantAck(now)
	case kindAck:
		number, _ := d.next()
		if at, ok := l.pings.answered(number); ok {
			l.rtt.sample(now - at)
		}
	case kindReliable:
		for len(d.rest) > 0 {
			seq, data := d.next()
			l.message(now, seqnum.U16.Expand(seq, l.recvNext), data)
		}
	}
	return nil
}

func (l *Link) refuse(err error) {
	switch err {
	case ErrShort:
		l.stats.RefusedShort++
	case ErrChecksum:
		l.stats.RefusedChecksum++
	case ErrHeader:
		l.stats.RefusedHeader++
	case ErrLength:
		l.stats.RefusedLength++
	}
}

// acked forgets all messages up to ack. By Karn's rule it is a sample only when none of them
// was sent twice: an older one that was resent is what the newest waited for.
func (l *Link) acked(now time.Duration, ack int64) {
	if ack < l.base {
		return
	}
	clean, sentAt := true, time.Duration(0)
	for ; l.base <= ack; l.base++ {
		m := l.out.Lookup(l.base)
		clean = clean && m.sends == 1
		sentAt = m.sentAt
		l.window.acked(int(m.size) + packedBytes)
		l.stats.MessagesAcked++
	}
	if l.blocked {
		l.nextDue = now
	}
	if clean {
		l.rtt.sample(now - sentAt)
	}
}

func (l *Link) wantAck(at time.Duration) {
	if !l.ackWanted || at < l.ackDue {
		l.ackWanted, l.ackDue = true, at
	}
}

// message takes one message: delivered, kept or dropped.
func (l *Link) message(now time.Duration, id int64, data []byte) {
	switch {
	case id < l.recvNext || l.in.Lookup(id) != nil:
		l.stats.DroppedDuplicate++
		l.wantAck(now) // our ack was lost, it seems
	case id >= l.recvNext+int64(l.cfg.Window):
		l.stats.DroppedBeyond++
	case id > l.recvNext:
		m := l.in.Insert(id)
		m.size = uint8(copy(m.data[:], data))
		l.wantAck(now + l.cfg.AckDelay)
	default:
		l.wantAck(now + l.cfg.AckDelay)
		l.deliver(data)
		l.drain()
	}
}

func (l *Link) deliver(data []byte) {
	l.recvNext++
	l.stats.MessagesReceived++
	l.handler.Message(data)
}

// drain delivers what waited for the message before.
func (l *Link) drain() {
	for m := l.in.Lookup(l.recvNext); m != nil; m = l.in.Lookup(l.recvNext) {
		id := l.recvNext
		l.deliver(m.data[:m.size])
		l.in.Remove(id)
	}
}
