package channel

import "github.com/bunchnet/bunchnet/bunch"

// OutRec is a reliable bunch that waits for its ack.
type OutRec struct {
	Header   bunch.Header
	Data     []byte
	Seq      int64
	PacketID int64 // the last packet that carried it
	Sent     int64 // how often it was put into a packet since it was last known to be lost
	inFlight int   // packets that carry it and are neither acked nor naked
	acked    bool
}

// Copied reports whether the bunch has ridden again as often as copies allows.
func (r *OutRec) Copied(copies int) bool { return r.Sent > int64(copies) }

// Repeat notes that packet id carries the bunch once more.
func (r *OutRec) Repeat(id int64) {
	r.PacketID = id
	r.inFlight++
	r.Sent++
}

// outRecs is the reliable bunches of a channel in flight: sequences
// first..next-1 at slot seq%len.
//
// Invariant: next-first <= len(slots) <= ReliableBuffer, a power of two or zero.
type outRecs struct {
	slots       []OutRec
	first, next int64
	one         [1]OutRec // the first ring: most channels never have two in flight
}

func (o *outRecs) len() int { return int(o.next - o.first) }

func (o *outRecs) at(seq int64) *OutRec {
	if seq < o.first || seq >= o.next {
		return nil
	}
	return &o.slots[seq&int64(len(o.slots)-1)]
}

// push adds the bunch of sequence next, growing up to what the caller checked.
func (o *outRecs) push() *OutRec {
	if o.slots == nil {
		o.slots = o.one[:]
	}
	if o.len() == len(o.slots) {
		slots := make([]OutRec, max(4, 2*len(o.slots)))
		for s := o.first; s < o.next; s++ {
			slots[s&int64(len(slots)-1)] = *o.at(s)
		}
		o.slots = slots
	}
	r := &o.slots[o.next&int64(len(o.slots)-1)]
	*r = OutRec{Seq: o.next, PacketID: bunch.NoPacket}
	o.next++
	return r
}

// inRec is a reliable bunch that came before its turn.
type inRec struct {
	in   bunch.In
	data []byte
	held bool
}

// inRecs is the early reliable bunches of a channel, at slot seq%len. All are
// less than len(slots) apart, since the caller bounds how far ahead one may be.
type inRecs struct {
	slots []inRec
	n     int
}

// slot is where seq belongs when next is the sequence to be released next. It
// grows the ring as far as needed.
func (q *inRecs) slot(seq, next int64) *inRec {
	if ahead := int(seq-next) + 1; ahead > len(q.slots) {
		size := max(4, len(q.slots))
		for size < ahead {
			size *= 2
		}
		slots := make([]inRec, size)
		for i := range q.slots {
			if r := &q.slots[i]; r.held {
				slots[r.in.ChSequence&int64(size-1)] = *r
			}
		}
		q.slots = slots
	}
	return &q.slots[seq&int64(len(q.slots)-1)]
}
