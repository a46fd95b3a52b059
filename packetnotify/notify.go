package packetnotify

import (
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Handler hears what became of each packet, in the order they were sent.
type Handler interface {
	// PacketAcked: packet id was delivered and its bunches processed.
	PacketAcked(id int64)
	// PacketLost: packet id was lost, refused, or too long ago to tell.
	PacketLost(id int64)
}

// Config is what differs between versions.
type Config struct {
	// WaitForFlush refuses packets rather than lose track of deliveries that the
	// peer hasn't heard of. Off in Unreal 4.27 and 5.1, on in 5.8.
	WaitForFlush bool
	// AckRecords bounds the packets in flight whose acks are remembered; with more, the
	// next header repeats the whole history. 0 or less: 255, as the recorded peer; more
	// than 8191 is 8191. Use that with WaitForFlush, so that no record is ever missing.
	AckRecords int
}

// Notify is both directions of one end's packet delivery notification. All ids
// are full and never wrap; they truncate to the sequences on the wire. Not safe for
// concurrent use.
//
// Invariants, between any two calls:
//
//	inAckSeq <= inSeq           acked is only what was accepted
//	told <= outAckSeq < outSeq  known is only what was sent
//	writtenAck <= inAckSeq      written is only what was acked
//	heard = {first sent .. outAckSeq}, each once and in order
//	records hold the last min(Outstanding, AckRecords) packets sent
//
// After AckSeq also inAckSeq == inSeq and inAckSeqAck <= inAckSeq.
type Notify struct {
	cfg Config
	in  history.History // bit 0 is inAckSeq

	inSeq, inAckSeq, inAckSeqAck int64
	outSeq, outAckSeq            int64
	told                         int64 // outAckSeq when the newest packet that we ack came, so that who hears our ack knows it

	records      ackRecords
	writtenWords int
	writtenAck   int64
	waitingFlush int64 // our packet that must be acked before theirs are accepted again
	flushAck     int64 // what it must ack
}

// Init starts anew: incoming is the sequence of the peer's first packet, outgoing of ours.
func (n *Notify) Init(cfg Config, incoming, outgoing uint16) {
	in, out := int64(incoming), int64(outgoing)
	*n = Notify{cfg: cfg, inSeq: in - 1, inAckSeq: in - 1, inAckSeqAck: in - 1,
		outSeq: out, outAckSeq: out - 1, told: out - 1, writtenAck: in - 1, waitingFlush: out - 1}
	n.records.limit = min(max(cfg.AckRecords, 0), maxRecords)
}

// OutID is the id that the next Commit returns.
func (n *Notify) OutID() int64 { return n.outSeq }

// OutAckID is the newest of our packets whose fate is known.
func (n *Notify) OutAckID() int64 { return n.outAckSeq }

// InID is the newest packet of the peer that was accepted.
func (n *Notify) InID() int64 { return n.inSeq }

// Outstanding is the number of our packets whose fate isn't known.
func (n *Notify) Outstanding() int { return int(n.outSeq - n.outAckSeq - 1) }

// WrittenAckID is the newest packet of the peer that the header written last acks.
func (n *Notify) WrittenAckID() int64 { return n.writtenAck }

// Unsettled is the number of our packets that the peer must keep in its history: those whose fate isn't known, and those
// of which the peer can't know yet that we know it. It differs from Outstanding between Update and AckSeq, and
// while the peer's packets are refused.
func (n *Notify) Unsettled() int { return int(n.outSeq - n.told - 1) }

// HasUnackedAcks reports whether there was a delivery that the peer isn't known to
// have heard of.
func (n *Notify) HasUnackedAcks() bool {
	return n.in.AnyDelivered(int(min(n.inAckSeq-n.inAckSeqAck, history.Bits)))
}

// WaitingForFlush reports whether the peer's packets are refused until it acks one
// of ours; only with Config.WaitForFlush. An ack should be sent soon.
func (n *Notify) WaitingForFlush() bool { return n.waitingFlush > n.outAckSeq }

// WindowFull reports whether so many packets are unsettled that the peer's history could not tell about more, less a margin.
// Sending on is allowed. What falls out of the history counts as lost then, or has a peer with Config.WaitForFlush refuse our packets
// for a round trip. But never have 8192 in flight, where sequences stop being distinct.
func (n *Notify) WindowFull(margin int) bool { return n.Unsettled() >= history.Bits-margin }

// words is the number of history words that tell all the peer doesn't know.
func (n *Notify) words() int {
	unknown := n.inAckSeq - n.inAckSeqAck
	return int(min(max((unknown+31)/32, 1), history.MaxWords))
}

func (n *Notify) packed() uint64 {
	return packed(seqnum.Packet.Truncate(n.outSeq), seqnum.Packet.Truncate(n.inAckSeq), n.writtenWords)
}

// WriteHeader writes the header of the next packet as things stand.
func (n *Notify) WriteHeader(w *bitio.Writer) {
	n.writtenWords, n.writtenAck = n.words(), n.inAckSeq
	write(w, n.packed(), &n.in, n.writtenWords)
}

// WriteAgain writes the header of the newest packet once more, with the acks of now. The peer takes the packet once, and the acks
// of each; what it knows when it acks that packet is at least what the first one told.
func (n *Notify) WriteAgain(w *bitio.Writer) {
	words := n.words()
	write(w, packed(seqnum.Packet.Truncate(n.outSeq-1), seqnum.Packet.Truncate(n.inAckSeq), words), &n.in, words)
}

// RefreshHeader brings the header at bit pos up to date before the packet leaves. The
// number of words stays; when more are needed now, the old header stays as it was and
// the answer is false.
func (n *Notify) RefreshHeader(w *bitio.Writer, pos int) bool {
	if n.inAckSeq == n.writtenAck {
		return true
	}
	if n.words() > n.writtenWords {
		return false
	}
	n.writtenAck = n.inAckSeq
	w.PatchBits(pos, n.packed(), packedBits)
	for i := range n.writtenWords {
		w.PatchBits(pos+packedBits+32*i, uint64(n.in.Word(i)), 32)
	}
	return true
}

// Commit notes that the packet whose header was written last was sent, and
// returns its id.
func (n *Notify) Commit() int64 {
	id := n.outSeq
	n.records.push(id, n.writtenAck)
	n.outSeq++
	if id == n.waitingFlush && n.writtenAck < n.flushAck {
		n.waitingFlush++ // the header is from before the wait: it won't do
	}
	return id
}

// Skip leaves out the next sequence and returns its id: no packet has it, so the peer can only say that it is
// lost.
func (n *Notify) Skip() int64 {
	id := n.outSeq
	n.records.push(id, n.writtenAck)
	n.outSeq++
	if id == n.waitingFlush {
		n.waitingFlush++
	}
	return id
}

// Shrink gives back the memory of records of more than inFlight packets, a power of two, unless there are more in flight.
func (n *Notify) Shrink(inFlight int) {
	if r := &n.records; inFlight < len(r.acks) && r.next-r.first <= int64(inFlight) {
		r.resize(inFlight)
	}
}

// Delta is how far h is ahead of the newest accepted packet; 0 when it would be dropped.
func (n *Notify) Delta(h *Header) int64 {
	seq, acked := n.expand(h)
	if seq <= n.inSeq || acked < n.outAckSeq || acked >= n.outSeq {
		return 0
	}
	return seq - n.inSeq
}

// Late reports whether h is of a packet before the newest accepted, that wasn't
// accepted itself: it came late, rather than twice.
func (n *Notify) Late(h *Header) bool {
	seq, _ := n.expand(h)
	return seq < n.inAckSeq && n.inAckSeq-seq < history.Bits && !n.in.Delivered(int(n.inAckSeq-seq))
}

// ID is the full id of the packet of h, as close as it is to the newest accepted.
func (n *Notify) ID(h *Header) int64 {
	id, _ := n.expand(h)
	return id
}

// AckedID is the full id of the newest of our packets that h acks, as close as it is to the newest whose fate is known.
func (n *Notify) AckedID(h *Header) int64 {
	_, acked := n.expand(h)
	return acked
}

func (n *Notify) expand(h *Header) (seq, acked int64) {
	return seqnum.Packet.Expand(h.Seq, n.inSeq), seqnum.Packet.Expand(h.AckedSeq, n.outAckSeq)
}

// Again reports whether h is of the newest accepted packet, which came before: the network or the peer sent it twice.
func (n *Notify) Again(h *Header) bool {
	seq, acked := n.expand(h)
	return seq == n.inSeq && acked >= n.outAckSeq && acked < n.outSeq
}

// Update takes the header of a packet that came: it tells handler about our packets,
// then moves on to h's sequence. A delta of 0 means the packet must be dropped; if the peer sent its newest
// once more, the acks in it were taken. With processBunches process the bunches and then call AckSeq; without, leave them alone
// and, if WaitingForFlush, send an ack soon.
func (n *Notify) Update(h *Header, handler Handler) (delta int64, processBunches bool) {
	seq, acked := n.expand(h)
	delta = seq - n.inSeq
	if delta < 0 || acked < n.outAckSeq || acked >= n.outSeq {
		return 0, false
	}
	n.processAcks(h, acked, handler)
	if delta == 0 {
		return 0, false
	}
	if n.cfg.WaitForFlush {
		n.checkOverflow(seq)
	}
	if n.WaitingForFlush() {
		return n.refuse(seq), false
	}
	n.inSeq = seq
	return delta, true
}

// processAcks tells about our packets up to acked, oldest first.
func (n *Notify) processAcks(h *Header, acked int64, handler Handler) {
	if acked <= n.outAckSeq {
		return
	}
	if ack, ok := n.records.pop(n.outAckSeq+1, acked); ok {
		n.inAckSeqAck = max(n.inAckSeqAck, ack)
	} else {
		// Its record is forgotten: assume the peer knows nothing of the history.
		n.inAckSeqAck = n.inAckSeq - history.Bits
	}
	for id := n.outAckSeq + 1; id <= acked; id++ {
		// outAckSeq moves along, so that a handler sees it when it sends.
		n.outAckSeq = id
		if h.History.Delivered(int(acked - id)) {
			handler.PacketAcked(id)
		} else {
			handler.PacketLost(id)
		}
	}
}

// AckSeq notes that the newest packet's bunches were processed; delivered is
// false to refuse it, so that the sender takes it for lost.
func (n *Notify) AckSeq(delivered bool) {
	n.ackUpTo(n.inSeq, delivered)
	n.told = n.outAckSeq
}

func (n *Notify) ackUpTo(seq int64, delivered bool) {
	if missing := seq - n.inAckSeq - 1; missing > 0 {
		n.in.AddLost(int(min(missing, history.Bits)))
	}
	if seq > n.inAckSeq {
		n.in.Add(delivered)
		n.inAckSeq = seq
	}
}

// flushPatience is how many packets we send while waiting for a flush before the
// wait may be given up. Each of them carries all our acks.
const flushPatience = 32

// checkOverflow begins to wait when accepting seq would push deliveries out of the
// history that the peer hasn't heard of.
func (n *Notify) checkOverflow(seq int64) {
	switch {
	case n.WaitingForFlush():
		// A peer that keeps its window gets a whole history ahead of our acks only if it
		// refuses our packets, too. One of us must accept, or neither ever would. What we couldn't tell is out of the history by that.
		if seq-n.inSeq > history.Bits && n.outSeq-n.waitingFlush > flushPatience {
			n.waitingFlush, n.inAckSeqAck = n.outAckSeq, seq-1
		}
	case seq-n.inAckSeqAck <= history.Bits:
	case n.HasUnackedAcks():
		n.waitingFlush, n.flushAck = n.outSeq, n.inAckSeq
	default:
		n.inAckSeqAck = seq - 1
	}
}

// refuse acks packets up to seq as lost, as far as the history has room for it.
func (n *Notify) refuse(seq int64) (delta int64) {
	target := seq
	if seq-n.inAckSeqAck > history.Bits && n.HasUnackedAcks() {
		target = n.inAckSeqAck + history.Bits - (n.inAckSeq - n.inAckSeqAck)
	}
	if target < n.inSeq {
		return 0
	}
	delta = target - n.inSeq
	n.inSeq = target
	n.ackUpTo(target, false)
	if target == seq {
		n.told = n.outAckSeq
	}
	return delta
}
