package message

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// lookahead bounds the messages that a Write passes over because they don't fit.
const lookahead = 64

// Write writes the messages that are due and fit w and Config.Budget, and returns how many. Older ones go first; in
// Unordered queues the most urgent. Smaller ones fill the room that a larger one leaves, except in Sequenced queues, and in Ordered ones whose last packets the
// peer seems to refuse. Credit alone counts as one. When Write returns 0, nothing was written. Otherwise call Sent or NotSent.
func (q *Queue) Write(now time.Duration, w *bitio.Writer) int {
	q.left()
	q.now = max(q.now, now)
	q.flying.shrink(q.memory, q.now)
	q.rtt.sample(q.now)
	q.most = min(q.cfg.Budget, w.Free()) - headerBits
	room := q.most
	if q.single > 0 {
		room = min(room, q.single-headerBits)
	}
	n := 0
	switch q.cfg.Mode {
	case Ordered:
		if q.vain.rounds < manyVain || q.now-q.vain.wroteAt >= q.rtt.wait(min(q.cfg.Resend, defaultResend)) {
			n = q.chooseOrdered(room)
		}
	case Sequenced:
		n = q.chooseSequenced(room)
	case Unordered:
		n = q.chooseUrgent(room)
	}
	credit := q.creditDue(n > 0) && room >= 0
	if n > 0 || credit {
		n, credit = q.remembered(n, credit)
	}
	q.wroteCredit = credit
	if n == 0 && !credit {
		return 0
	}
	if n > 0 {
		q.vain.wroteAt = q.now
	}
	if q.cfg.Mode == Ordered {
		q.writeCredit(w, credit)
	}
	w.WriteInt(uint32(n), maxPerPacket+1)
	q.writeMessages(w)
	return max(n, 1)
}

// remembered is what of n chosen messages and of credit a packet may carry, so that there is memory for it until its fate is known.
func (q *Queue) remembered(n int, credit bool) (int, bool) {
	if q.cfg.Mode != Ordered {
		return n, credit
	}
	n, ok := q.flying.room(q.memory, n)
	q.pending = q.pending[:n]
	return n, credit && ok
}

// fits takes a message's room; or counts one that no room of this size will take. The first message of a Write may be larger than a packet, up to q.most; it is split.
func (q *Queue) fits(o *outgoing, room *int, first bool) bool {
	need := o.e.bits + overheadBits
	if need <= *room || first && need <= q.most {
		*room -= need
		return true
	}
	if first {
		q.Counters.NoRoom++
	}
	return false
}

func (q *Queue) chooseOrdered(room int) int {
	whole, wait := room, q.rtt.wait(q.cfg.Resend)
	for id, passed := q.oldest, 0; id < min(q.next, q.credit, q.oldest+q.vain.ahead()) && len(q.pending) < maxPerPacket && passed < lookahead; id++ {
		o := q.at(id)
		if o.acked || o.sent && q.now-o.at < wait {
			continue
		}
		if q.fits(o, &room, room == whole) {
			q.pending = append(q.pending, id)
		} else {
			passed++
		}
	}
	return len(q.pending)
}

// chooseSequenced keeps the order: what doesn't fit ends the packet.
func (q *Queue) chooseSequenced(room int) int {
	whole := room
	for id := q.oldest; id < q.next && len(q.pending) < maxPerPacket && q.fits(q.at(id), &room, room == whole); id++ {
		q.pending = append(q.pending, id)
	}
	return len(q.pending)
}

func (q *Queue) chooseUrgent(room int) int {
	whole := room
	var passed [lookahead]outgoing
	n := 0
	for len(q.urgent) > 0 && len(q.chosen) < maxPerPacket && n < lookahead {
		o := q.urgent.pop()
		if q.fits(&o, &room, room == whole) {
			q.chosen = append(q.chosen, o)
		} else {
			passed[n] = o
			n++
		}
	}
	for _, o := range passed[:n] {
		q.urgent.push(o)
	}
	return len(q.chosen)
}

func (q *Queue) writeMessages(w *bitio.Writer) {
	last := int64(-1)
	for _, id := range q.pending {
		o := q.at(id)
		q.writeID(w, id, last)
		last = id
		q.writeMessage(w, o)
		o.sent, o.at = true, q.now
	}
	for i := range q.chosen {
		q.writeMessage(w, &q.chosen[i])
	}
}

func (q *Queue) writeMessage(w *bitio.Writer, o *outgoing) {
	w.WriteInt(uint32(o.e.kind.id), uint32(len(q.cfg.Kinds.kinds)))
	w.WriteBitsFrom(o.e.buf, 0, o.e.bits)
	if o.sent {
		q.Counters.Resent++
	}
	q.Counters.Sent++
}

func (q *Queue) writeID(w *bitio.Writer, id, last int64) {
	switch {
	case q.cfg.Mode == Sequenced && last < 0:
		w.WriteUint32(uint32(id))
	case q.cfg.Mode == Sequenced: // always consecutive
	case last < 0:
		w.WriteUint16(seqnum.U16.Truncate(id))
	default:
		w.WriteBool(id == last+1)
		if id != last+1 {
			w.WriteUint16(seqnum.U16.Truncate(id))
		}
	}
}

// Sent says which packet carries what the last Write wrote. Ids rise. A packet without Acked or Lost after 8192 later ones of the queue
// counts as lost.
func (q *Queue) Sent(packetID int64) {
	if q.cfg.Mode != Ordered {
		q.left()
		return
	}
	if len(q.pending) == 0 && !q.wroteCredit {
		return
	}
	p := q.flying.sent(packetID, q.now, q.pending...)
	if q.wroteCredit { // only what a packet carries is confirmed by its ack
		p.credit, q.wroteCredit = q.told, false
	}
	q.pending = q.pending[:0]
}

// left is that what the last Write wrote has gone, whether Sent said so or not: unreliable messages are done then.
func (q *Queue) left() {
	for _, id := range q.pending {
		if q.cfg.Mode == Sequenced {
			q.release(q.at(id))
			q.oldest = id + 1
		}
	}
	for i := range q.chosen {
		q.release(&q.chosen[i])
	}
	q.pending, q.chosen = q.pending[:0], q.chosen[:0]
}

// NotSent says that what the last Write wrote wasn't sent: it is due again at once.
func (q *Queue) NotSent() {
	for _, id := range q.pending {
		q.at(id).sent = false
	}
	for i := range q.chosen {
		q.urgent.push(q.chosen[i])
		q.chosen[i] = outgoing{}
	}
	if len(q.pending) > 0 {
		q.vain.wroteAt = longAgo
	}
	q.pending, q.chosen = q.pending[:0], q.chosen[:0]
	if q.wroteCredit {
		q.told, q.wroteCredit = q.confirmed, false
	}
}

// Acked says that a packet has arrived, and with it its messages.
func (q *Queue) Acked(packetID int64) {
	p := q.flying.find(packetID)
	if p == nil {
		return
	}
	if p.n > 0 {
		q.vain.acked(p.at, int(p.n), q.cfg.Window)
	}
	for i := range p.n {
		id := q.flying.item(p, i)
		if id < q.oldest {
			continue
		}
		if o := q.at(id); !o.acked {
			o.acked = true
			q.Counters.Acked++
		}
	}
	q.confirmed = max(q.confirmed, p.credit)
	q.rtt.ack(p.at)
	q.flying.settled(p)
	for q.oldest < q.next && q.at(q.oldest).acked {
		q.release(q.at(q.oldest))
		q.oldest++
	}
}

// Lost says that a packet is lost: its messages are due again at once.
func (q *Queue) Lost(packetID int64) {
	p := q.flying.find(packetID)
	if p == nil {
		return
	}
	if p.n > 0 {
		q.vain.lost(p.at, q.now)
	}
	for i := range p.n {
		if id := q.flying.item(p, i); id >= q.oldest {
			q.at(id).at = longAgo
		}
	}
	if p.credit == q.told {
		q.told = q.confirmed
	}
	q.flying.settled(p)
}
