package channel

import (
	"github.com/bunchnet/bunchnet/bunch"
)

// How lost reliable bunches are sent again. A nak only queues a bunch as due. Pump sends the control channel's bunches, then due ones, then
// those never sent, one bunch of each channel in turn. It stops when the connection's window is full or its rate controller has no
// budget. Channels come in the order in which their bunches were lost. Each sends its oldest bunch first, because the peer can't release the
// others before it, and on a path that loses most packets a bunch is lost many times. Channels that the peer may be refusing have queues of their
// own; see refused.go.

// outRec is an entry of OutRec: a reliable bunch that isn't acked.
type outRec struct {
	header   bunch.Header
	data     []byte
	seq      int64
	packetID int64 // last packet that carried it
	lost     uint8 // how often it was lost, at most lostMost
	sent     int32 // how often it was sent since it was last lost
	inFlight int32 // packets in flight that carry it
	acked    bool
	waiting  bool // in one of the table's queues
	refused  bool // waits in Table.refused
	seen     bool // by compact
	noMerge  bool // nothing is merged with it
	hole     bool // was lost, and isn't known to have arrived
}

// rides notes that packet id carries the bunch.
func (r *outRec) rides(id int64) {
	r.packetID = id
	r.inFlight++
	r.sent++
}

// outRecs is OutRec: the unacked reliable bunches of a channel, sequences first to next-1, at slots[seq%len]. Its size
// follows its content.
//
// Invariant: next-first <= len(slots) <= ReliableBuffer; len(slots) is a power of two or zero; slots of other sequences are zero.
type outRecs struct {
	slots       []outRec
	first, next int64
}

func (o *outRecs) len() int { return int(o.next - o.first) }

func (o *outRecs) at(seq int64) *outRec {
	if seq < o.first || seq >= o.next {
		return nil
	}
	return &o.slots[seq&int64(len(o.slots)-1)]
}

// push adds the bunch of sequence next. The caller has checked the bound.
func (o *outRecs) push(p *Pool) *outRec {
	if o.len() == len(o.slots) {
		n := 1 // most channels never have two in flight
		if o.slots != nil {
			n = max(4, 2*len(o.slots))
		}
		slots := p.getRing(n)
		for s := o.first; s < o.next; s++ {
			slots[s&int64(len(slots)-1)] = *o.at(s)
		}
		clear(o.slots)
		o.giveBack(p)
		o.slots = slots
	}
	r := &o.slots[o.next&int64(len(o.slots)-1)]
	r.seq, r.packetID = o.next, bunch.NoPacket
	o.next++
	return r
}

// popFirst removes the oldest bunch.
func (o *outRecs) popFirst(p *Pool) {
	r := o.at(o.first)
	p.Put(r.data)
	*r = outRec{}
	if o.first++; o.first == o.next {
		o.giveBack(p)
	}
}

// giveBack returns a ring with zero entries to the pool.
func (o *outRecs) giveBack(p *Pool) {
	if o.slots != nil {
		p.putRing(o.slots)
	}
	o.slots = nil
}

// transmit puts a reliable bunch into the SendBuffer. It isn't merged with other bunches.
func (t *Table) transmit(ch *Channel, rec *outRec) {
	rec.rides(t.outlet.WriteBunch(&rec.header, rec.data, ch, rec.seq))
	t.last = lastBunch{}
}

// Acked says that packet id, which carried the bunch seq of ch (-1 unreliable), arrived. After all bunches of a packet
// Settled is called for each of its channels.
func (m *Machine) Acked(ch *Channel, seq, id int64) {
	if ch.closed {
		return
	}
	if rec := ch.out.at(seq); seq >= 0 && rec != nil {
		rec.inFlight--
		rec.acked = true
		m.table().notWaiting(ch, rec)
		takes := m.table().takes(ch, rec)
		if (takes || seq == ch.out.first) && (ch.refused || ch.numRefused > 0) {
			m.table().taken(ch)
		}
		m.table().releaseFront(ch)
		if !takes {
			return
		}
		if first := ch.out.at(ch.out.first); first != nil {
			first.lost = 0
		}
	}
}

// Naked says that packet id, which carried the bunch seq of ch (-1 unreliable), is lost. It sends nothing.
func (m *Machine) Naked(ch *Channel, seq, id int64) {
	if ch.closed {
		return
	}
	rec := ch.out.at(seq)
	if seq < 0 || rec == nil {
		return
	}
	rec.inFlight--
	if !rec.acked && rec.inFlight == 0 {
		rec.sent = 0
		m.table().again(ch, rec)
	}
}

// again queues a bunch to be sent again.
func (t *Table) again(ch *Channel, rec *outRec) {
	if rec.waiting {
		return
	}
	t.dropStale()
	rec.waiting = true
	if rec.lost++; rec.lost == refusedOften {
		t.oftenLost(rec)
	}
	rec.lost = min(rec.lost, lostMost)
	ch.due = min(ch.due, int32(rec.seq-ch.out.first))
	t.Counters.Resent++
	if t.mayBeRefused(ch, rec) {
		t.refuse(ch, rec)
	} else {
		t.lostAhead(ch, rec)
		t.dueOf(ch).push(ch, rec.seq)
	}
}

// dueOf is the queue for a channel's bunches to send again.
func (t *Table) dueOf(ch *Channel) *backlog {
	if ch.index == 0 {
		return &t.first
	}
	return &t.due
}

// Settled tells ch's handler whether a packet with its bunches arrived, after all bunches of the packet were settled, so
// that an open among them counts already.
func (m *Machine) Settled(ch *Channel, id int64, arrived bool) {
	if ch.notes--; ch.closed {
		ch.forget()
		return
	}
	if ch.lastNotified != id && ch.handler != nil {
		ch.lastNotified = id
		if arrived {
			ch.handler.ReceivedAck(ch, id)
		} else {
			ch.handler.ReceivedNak(ch, id)
		}
	}
	if ch.temporary && ch.notes == 0 { // all that was sent of its only bunch has arrived or is lost
		m.table().remove(ch, ch.closeReason)
	}
}

// Noted says that the connection will call Settled once for ch.
func (m *Machine) Noted(ch *Channel) { ch.notes++ }

// releaseFront frees acked bunches in order, and handles the open and the close among them.
func (t *Table) releaseFront(ch *Channel) {
	for {
		rec := ch.out.at(ch.out.first)
		if rec == nil || !rec.acked {
			return
		}
		closing := rec.header.Close
		ends := !rec.header.Partial || rec.header.PartialFinal
		t.heldOut -= outCost + cap(rec.data)
		t.notAhead(ch, rec)
		ch.out.popFirst(t.cfg.Pool)
		ch.due = max(ch.due-1, 0)
		t.unacked--
		if ch.openSent && ch.openAt < ch.out.first {
			ch.openAcked = true
			t.yieldsNoMore(ch)
			if ends {
				ch.openAt = bunch.NoPacket
			}
		}
		if r := ch.rare; r != nil {
			if r.pausedUntil <= ch.out.first {
				r.pausedUntil = 0
			}
			if r.begun > 0 && r.begunEnd <= ch.out.first {
				t.endBegun(ch)
			}
			ch.dropRare()
		}
		if closing {
			t.remove(ch, ch.closeReason)
			return
		}
	}
}

// Pump sends waiting reliable bunches as far as the connection allows, lost ones first.
func (m *Machine) Pump() {
	if t := m.table(); t.first.len() > 0 || t.due.len() > 0 || t.refused.len() > 0 || t.fresh.len() > 0 || t.blocked.len() > 0 {
		t.pumpAll()
	}
}

func (t *Table) pumpAll() {
	t.pump(&t.first)
	t.pump(&t.due)
	t.unblock(mostPassed)
	for sent := true; sent; {
		switch {
		case t.refused.len() > 0 && (t.freshTurn < 0 || t.fresh.waiting == 0) && t.mayTurn():
			sent = t.pumpRefused()
		case t.fresh.len() > 0:
			sent = t.pumpTurn()
		case !t.unblock(mostPassed):
			return
		}
	}
}

func (t *Table) pump(q *backlog) {
	for q.len() > 0 && t.pumpOne(q) {
	}
}

// oldestDue is the oldest bunch of a channel that waits to be sent again. If none does it is seq, which comes after all
// of those.
func (ch *Channel) oldestDue(seq int64) *outRec {
	s := ch.out.first + int64(ch.due)
	for s < seq && !ch.out.at(s).waiting {
		s++
	}
	ch.due = int32(s - ch.out.first)
	return ch.out.at(s)
}

// pumpOne drops the first entry of a queue if it is outdated, otherwise sends the oldest bunch of its channel. It
// returns false when the connection didn't allow that.
func (t *Table) pumpOne(q *backlog) bool {
	ch, seq := q.first()
	rec := ch.out.at(seq)
	switch {
	case rec == nil || !rec.waiting || rec.refused:
		t.stale--
		q.pop()
	case ch.refused:
		t.refuse(ch, rec)
		q.pop()
	default:
		rec = ch.oldestDue(seq)
		if !t.outlet.MaySend(rec.header.Bits) {
			return false
		}
		t.notWaiting(ch, rec)
		t.transmit(ch, rec)
	}
	return true
}

// notWaiting says that a bunch no longer waits; its queue entry becomes outdated.
func (t *Table) notWaiting(ch *Channel, rec *outRec) {
	switch {
	case !rec.waiting:
	case rec.refused:
		t.notRefused(ch, rec)
	default:
		t.stale++
	}
	rec.waiting = false
}

// dropStale compacts the queues. Otherwise a peer could make them long: by having channels closed while their bunches
// wait and letting nothing be sent, or by naking the oldest bunches of a channel again and again before the others have their turn.
func (t *Table) dropStale() {
	t.fresh.compact()
	t.blocked.compact()
	t.line.compact()
	t.refused.compact()
	if t.stale <= maxStale || t.stale <= t.first.len()+t.due.len()-t.stale {
		return
	}
	t.first.compact()
	t.due.compact()
	t.stale = 0
}

// maxStale is how many outdated entries aren't worth compacting.
const maxStale = 64

// Copy returns the reliable bunch seq of ch, to be sent once more in the current packet, and the last packet that
// carried it. It returns nil when the bunch is acked, waits to be sent anyway, may be refused by the peer with its whole
// packet, or was sent as often as copies allows.
func (m *Machine) Copy(ch *Channel, seq int64, copies int) (h *bunch.Header, data []byte, last int64) {
	rec := ch.out.at(seq)
	if ch.closed || rec == nil || rec.acked || rec.waiting || rec.lost >= refusedOften || int(rec.sent) > copies {
		return nil, nil, bunch.NoPacket
	}
	return &rec.header, rec.data, rec.packetID
}

// Copied says that packet id carries the bunch that Copy returned.
func (m *Machine) Copied(ch *Channel, seq, id int64) { ch.out.at(seq).rides(id) }

// backlog is a queue of reliable bunches to send. A waiting bunch has one entry. There are at most as many outdated
// entries as these, plus maxStale.
type backlog struct {
	items []waitingBunch
	head  int
}

type waitingBunch struct {
	ch  *Channel
	seq int64
}

func (b *backlog) len() int { return len(b.items) - b.head }

func (b *backlog) push(ch *Channel, seq int64) {
	if 2*b.head >= len(b.items) && len(b.items) == cap(b.items) {
		n := copy(b.items, b.items[b.head:])
		clear(b.items[n:])
		b.items, b.head = b.items[:n], 0
	}
	b.items = append(b.items, waitingBunch{ch, seq})
}

func (b *backlog) first() (*Channel, int64) {
	it := &b.items[b.head]
	return it.ch, it.seq
}

func (b *backlog) pop() {
	b.items[b.head] = waitingBunch{}
	if b.head++; b.head == len(b.items) {
		b.items, b.head = b.items[:0], 0
		if cap(b.items) > maxIdleBacklog {
			b.items = nil
		}
	}
}

// compact drops outdated and duplicate entries.
func (b *backlog) compact() {
	kept := b.items[:0]
	for _, it := range b.items[b.head:] {
		if rec := it.ch.out.at(it.seq); rec != nil && rec.waiting && !rec.refused && !rec.seen {
			rec.seen = true
			kept = append(kept, it)
		}
	}
	for _, it := range kept {
		it.ch.out.at(it.seq).seen = false
	}
	clear(b.items[len(kept):])
	b.items, b.head = kept, 0
	if len(kept) <= maxIdleBacklog && cap(kept) > 2*maxIdleBacklog {
		b.items = append([]waitingBunch(nil), kept...)
	}
}

// maxIdleBacklog is the capacity that an empty backlog keeps.
const maxIdleBacklog = 1024
