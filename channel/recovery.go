package channel

import (
	"github.com/bunchnet/bunchnet/bunch"
)

// How a lost reliable bunch comes again: a nak only queues it as due. Pump sends the control channel's bunches, then
// what is due, and then what was never sent, a bunch of each channel in turn, as long as the connection says it may: its window has room and its
// controller has budget. Channels go in the order in which their bunches were lost, and
// each sends its oldest one first: the others wait for it at the peer, and on a path that loses most of what is sent a bunch is
// lost many times. What the peer may be refusing has queues of its own; see refused.go.

// outRec is OutRec's entry: a reliable bunch that waits for its ack.
type outRec struct {
	header   bunch.Header
	data     []byte
	seq      int64
	packetID int64 // the last packet that carried it
	lost     uint8 // how often it was lost, up to lostMost
	sent     int32 // how often it was put into a packet since it was last known to be lost
	inFlight int32 // packets that carry it and are neither acked nor naked
	acked    bool
	waiting  bool // in one of the table's queues
	refused  bool // it waits for the channel's turn in Table.refused
	seen     bool // by compact
	noMerge  bool // stays apart from what follows
}

// rides notes that packet id carries the bunch once more.
func (r *outRec) rides(id int64) {
	r.packetID = id
	r.inFlight++
	r.sent++
}

// outRecs is OutRec: the reliable bunches of a channel that aren't acked, sequences first..next-1 at slot
// seq%len. Its size follows what is in it.
//
// Invariant: next-first <= len(slots) <= ReliableBuffer, a power of two or zero.
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

// push adds the bunch of sequence next, growing up to what the caller checked.
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
	*r = outRec{seq: o.next, packetID: bunch.NoPacket}
	o.next++
	return r
}

// popFirst forgets the oldest bunch.
func (o *outRecs) popFirst(p *Pool) {
	r := o.at(o.first)
	p.Put(r.data)
	*r = outRec{}
	if o.first++; o.first == o.next {
		o.giveBack(p)
	}
}

// giveBack returns a ring whose entries are zero to the pool.
func (o *outRecs) giveBack(p *Pool) {
	if o.slots != nil {
		p.putRing(o.slots)
	}
	o.slots = nil
}

// transmit puts a reliable bunch into the SendBuffer.
func (t *Table) transmit(ch *Channel, rec *outRec) {
	rec.rides(t.outlet.WriteBunch(&rec.header, rec.data, ch, rec.seq))
}

// Acked tells that packet id, which carried the bunch seq of ch (-1 unreliable), arrived. After those of a packet
// comes Settled for each of its channels.
func (m *Machine) Acked(ch *Channel, seq, id int64) {
	if ch.closed {
		return
	}
	if rec := ch.out.at(seq); seq >= 0 && rec != nil {
		rec.inFlight--
		rec.acked = true
		m.table().notWaiting(ch, rec)
		if ch.refused && seq == ch.out.first {
			m.table().taken(ch)
		}
		m.table().releaseFront(ch)
	}
}

// Naked tells that packet id, which carried the bunch seq of ch (-1 unreliable), is lost. Nothing is sent.
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
	rec.waiting = true
	if rec.lost++; rec.lost == refusedOften {
		t.oftenLost(rec)
	}
	rec.lost = min(rec.lost, lostMost)
	ch.due = min(int32(rec.seq)-ch.due, 0) + ch.due
	t.Counters.Resent++
	if t.mayBeRefused(ch, rec) {
		t.refuse(ch, rec)
	} else {
		t.dueOf(ch).push(ch, rec.seq)
	}
}

// dueOf is the queue of a channel's bunches that are sent again at once.
func (t *Table) dueOf(ch *Channel) *backlog {
	if ch.index == 0 {
		return &t.first
	}
	return &t.due
}

// Settled tells the handler what became of a packet that carried bunches of ch, once all of its bunches are settled:
// an open among them counts then.
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
	if ch.temporary && id == ch.openAt { // the fate of its only bunch is known
		m.table().remove(ch, bunch.Destroyed)
	}
}

// Noted tells that the connection will call Settled once for ch.
func (m *Machine) Noted(ch *Channel) { ch.notes++ }

// releaseFront frees acked bunches in order and acts on the open and the close among them.
func (t *Table) releaseFront(ch *Channel) {
	for ch.out.len() > 0 {
		rec := ch.out.at(ch.out.first)
		if !rec.acked {
			return
		}
		closing := rec.header.Close
		t.heldOut -= outCost + cap(rec.data)
		ch.out.popFirst(t.cfg.Pool)
		ch.due = max(ch.due-int32(ch.out.first), 0) + int32(ch.out.first)
		t.unacked--
		if ch.openSent && ch.openAt < ch.out.first {
			ch.openAcked = true
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

// Pump sends reliable bunches that wait, as far as the connection lets it: those that were lost first.
func (m *Machine) Pump() {
	t := m.table()
	t.pump(&t.first)
	t.pump(&t.due)
	for t.refused.len() > 0 || t.fresh.len() > 0 {
		send := t.pumpTurn
		if t.refused.len() > 0 && (t.freshTurn < 0 || t.fresh.waiting == 0) {
			send = t.pumpRefused
		}
		if !send() {
			return
		}
	}
}

func (t *Table) pump(q *backlog) {
	for q.len() > 0 && t.pumpOne(q) {
	}
}

// oldestDue is the oldest bunch of a channel that waits to be sent again, or else seq, which is behind all of those.
func (ch *Channel) oldestDue(seq int64) *outRec {
	first := ch.out.first
	for s := first + int64(max(0, ch.due-int32(first))); s < seq; s++ {
		if rec := ch.out.at(s); rec.waiting {
			ch.due = int32(s)
			return rec
		}
	}
	ch.due = int32(seq)
	return ch.out.at(seq)
}

// pumpOne sends the oldest bunch of the channel whose bunch is the first of a queue that still waits, if there is one, and
// reports whether the connection let it.
func (t *Table) pumpOne(q *backlog) bool {
	for q.len() > 0 {
		ch, seq := q.first()
		rec := ch.out.at(seq)
		if rec == nil || !rec.waiting || rec.refused {
			t.stale--
			q.pop()
			continue
		}
		if ch.refused {
			t.refuse(ch, rec)
			q.pop()
			continue
		}
		rec = ch.oldestDue(seq)
		if !t.outlet.MaySend(rec.header.Bits) {
			return false
		}
		if rec.seq == seq {
			q.pop()
		} else {
			t.stale++ // its own entry, somewhere behind
		}
		rec.waiting = false
		t.transmit(ch, rec)
		t.last = lastBunch{} // a bunch that waited isn't merged into
		break
	}
	return true
}

// notWaiting takes a bunch out of the queue that it waits in: its entry there is stale from now on.
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

// dropStale keeps the queues to what waits, a peer may make them long otherwise: it has channels closed while their
// bunches wait, and lets nothing be sent.
func (t *Table) dropStale() {
	t.fresh.compact()
	t.line.compact()
	t.refused.compact()
	if t.stale <= maxStale || t.stale <= t.first.len()+t.due.len()-t.stale {
		return
	}
	t.first.compact()
	t.due.compact()
	t.stale = 0
}

// maxStale is the stale entries that aren't worth a walk over the queues.
const maxStale = 64

// Copy is the reliable bunch seq of ch, to ride again in the packet at hand: nil when it is acked, waits for its turn
// anyway, may be refused by the peer with all that is in its packet, or rode as often as copies allows. last is the last packet that carried it.
func (m *Machine) Copy(ch *Channel, seq int64, copies int) (h *bunch.Header, data []byte, last int64) {
	rec := ch.out.at(seq)
	if ch.closed || rec == nil || rec.acked || rec.waiting || rec.lost >= refusedOften || int(rec.sent) > copies {
		return nil, nil, bunch.NoPacket
	}
	return &rec.header, rec.data, rec.packetID
}

// Copied notes that packet id carries the bunch that Copy gave.
func (m *Machine) Copied(ch *Channel, seq, id int64) { ch.out.at(seq).rides(id) }

// backlog is a queue of reliable bunches to send. Those that wait are in it once; there are at most as many stale
// entries, and maxStale, besides.
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

// compact drops stale entries, and all but one of what is in it twice.
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

// maxIdleBacklog is the entries whose memory an empty backlog keeps.
const maxIdleBacklog = 1024
