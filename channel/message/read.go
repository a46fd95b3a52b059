package message

import (
	"fmt"
	"math"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Read decodes a packet's messages. An error means that the peer broke the format (ErrFormat, ErrWindow) or, on a channel,
// that MaxMemory is used up (channel.ErrMemory): then the packet counts as lost, and the peer sends it again. The packet's messages before the error are kept.
func (q *Queue) Read(r *bitio.Reader) error {
	if q.cfg.Mode == Ordered && r.ReadBool() {
		credit := seqnum.U16.Expand(r.ReadUint16(), q.credit)
		if credit > q.next+int64(q.cfg.Window) {
			return ErrWindow
		}
		q.credit = max(q.credit, credit)
	}
	n := int(r.ReadInt(maxPerPacket + 1))
	s := &q.stream
	*s = Stream{r: r}
	last := int64(-1)
	for i := range n {
		id := q.readID(r, last, i)
		kind := r.ReadInt(uint32(len(q.cfg.Kinds.kinds)))
		if r.Err() != nil || int(kind) >= len(q.cfg.Kinds.kinds) {
			return ErrFormat
		}
		k := q.cfg.Kinds.kinds[kind]
		m := k.New()
		before := r.Remaining()
		s.spare = 0
		m.Serialize(s)
		bits := before - r.Remaining()
		r.Skip(max(0, leastBits-bits))
		k.saw(bits, s.spare)
		err := s.Err()
		if err == nil && bits > q.cfg.MaxBits {
			err = ErrTooLarge
		}
		if err != nil {
			k.Free(m)
			return fmt.Errorf("%w: %s: %w", ErrFormat, k.name, err)
		}
		if err := q.take(id, incoming{m: m, kind: k, bits: int32(bits), spare: int32(min(s.spare, math.MaxInt32/4))}); err != nil {
			return err
		}
		last = id
	}
	if r.Err() != nil {
		return ErrFormat
	}
	return nil
}

func (q *Queue) readID(r *bitio.Reader, last int64, i int) int64 {
	switch {
	case q.cfg.Mode == Unordered:
		return 0
	case q.cfg.Mode == Sequenced && i == 0:
		return q.recvNext + int64(int32(r.ReadUint32()-uint32(q.recvNext)))
	case i == 0:
		return seqnum.U16.Expand(r.ReadUint16(), q.recvNext)
	case q.cfg.Mode == Sequenced || r.ReadBool():
		return last + 1
	}
	return seqnum.U16.Expand(r.ReadUint16(), q.recvNext)
}

// take files a message: for delivery, for its turn, or away.
func (q *Queue) take(id int64, in incoming) error {
	q.Counters.Received++
	switch q.cfg.Mode {
	case Unordered:
		q.deliver(in)
		return nil
	case Sequenced:
		if id < q.recvNext {
			q.Counters.Old++
			in.kind.Free(in.m)
			return nil
		}
		q.recvNext = id + 1
		q.deliver(in)
		return nil
	}
	switch {
	case id >= q.recvNext+int64(q.cfg.Window):
		in.kind.Free(in.m)
		return ErrWindow
	case id < q.recvNext || q.has(id):
		q.Counters.Duplicate++
		in.kind.Free(in.m)
		return nil
	case q.holdInTurn(id, in.cost()):
	case id == q.recvNext && q.growIn(id):
		in.spare = reserved
	default:
		q.Counters.Refused++
		in.kind.Free(in.m)
		return channel.ErrMemory
	}
	if id < q.recvNext+int64(len(q.in)) {
		*q.inAt(id) = in
	} else {
		q.putFar(id, in)
	}
	q.inBits += int(in.bits)
	q.waiting++
	return nil
}

// holdInTurn counts n bytes for a message, unless there is no room for it and for as much of each missing one before it: what is ahead mustn't take the
// room of what it waits for.
func (q *Queue) holdInTurn(id int64, n int) bool {
	missing := max(0, int(id-q.recvNext)-q.waiting)
	if !q.holdMessage(n, missing*n) {
		return false
	}
	if q.growIn(id) {
		return true
	}
	q.letGo(n)
	return false
}

func (q *Queue) inAt(id int64) *incoming { return &q.in[id&int64(len(q.in)-1)] }

// has reports whether a message from recvNext on waits.
func (q *Queue) has(id int64) bool {
	if id < q.recvNext+int64(len(q.in)) && q.inAt(id).m != nil {
		return true
	}
	p := q.far[id/farPage]
	return p != nil && p.in[id%farPage].m != nil
}

// farPage is how many places of the ring's size a page of Queue.far has: a map of messages grew by more work for each than all else that is done for it.
const farPage = 16

type page struct {
	in [farPage]incoming
	n  int // that wait
}

// putFar files a message for which growIn has made room in a page.
func (q *Queue) putFar(id int64, in incoming) {
	p := q.far[id/farPage]
	if p == nil {
		p = new(page)
		q.far[id/farPage] = p
	}
	p.in[id%farPage] = in
	p.n++
}

// turn takes the message at recvNext, if it has come.
func (q *Queue) turn() (in incoming, ok bool) {
	if len(q.in) > 0 {
		if at := q.inAt(q.recvNext); at.m != nil {
			in, *at = *at, incoming{}
			return in, true
		}
	}
	p := q.far[q.recvNext/farPage]
	if p == nil || p.in[q.recvNext%farPage].m == nil {
		return in, false
	}
	at := &p.in[q.recvNext%farPage]
	in, *at = *at, incoming{}
	if p.n--; p.n > 0 {
		return in, true
	}
	if delete(q.far, q.recvNext/farPage); len(q.far) == 0 {
		if q.memory != nil {
			q.memory.Release(q.farRoom * farCost)
		}
		q.far, q.farRoom = nil, 0
	}
	return in, true
}

// thin is how many places of the ring there may be for each message that waits, and for leastRing more. Otherwise one that is far ahead would have a large ring made, on a channel
// after the other.
const thin = 4

// growIn makes room for a message of the window, and reports whether there is.
func (q *Queue) growIn(id int64) bool {
	n := max(len(q.in), q.leastRing())
	for int64(n) <= id-q.recvNext {
		n *= 2
	}
	switch {
	case n == len(q.in):
		return true
	case n > thin*(q.waiting+leastRing):
		if q.far[id/farPage] != nil || len(q.far) < q.farRoom {
			return true
		}
		if !q.holdWaiting(farCost, 0) {
			return false
		}
		if q.far == nil {
			q.far = map[int64]*page{}
		}
		q.farRoom++
		return true
	}
	if more := n - max(len(q.in), q.leastRing()); more > 0 && !q.holdWaiting(more*incomingSize, 0) {
		return false
	}
	old := q.in
	q.in = make([]incoming, n)
	for id := q.recvNext; id < q.recvNext+int64(len(old)); id++ {
		*q.inAt(id) = old[id&int64(len(old)-1)]
	}
	return true
}

// deliver queues an unreliable message for Receive. A game that doesn't receive loses some: the oldest of a
// queue that is Sequenced, otherwise the newest.
func (q *Queue) deliver(in incoming) {
	full := q.readyN >= q.cfg.Window
	for full || !q.growReady() || !q.holdMessage(in.cost(), 0) {
		if full = false; q.readyN == 0 {
			in.spare = reserved
			break
		}
		q.Counters.Dropped++
		m, k := Message(nil), (*Kind)(nil)
		if q.cfg.Mode == Sequenced {
			m, k = q.Receive()
		}
		if m == nil {
			in.kind.Free(in.m)
			return
		}
		k.Free(m)
	}
	q.inBits += int(in.bits)
	*q.readySlot(q.readyN) = in
	q.readyN++
}

// readySlot is the slot of the i-th message that waits.
func (q *Queue) readySlot(i int) *incoming { return &q.ready[(q.readyAt+i)&(len(q.ready)-1)] }

// growReady makes room for one more, and reports whether there is.
func (q *Queue) growReady() bool {
	if q.readyN < len(q.ready) {
		return true
	}
	n := max(2*len(q.ready), q.leastRing())
	if more := n - max(len(q.ready), q.leastRing()); more > 0 && !q.holdWaiting(more*incomingSize, 0) {
		return false
	}
	ring := make([]incoming, n)
	for i := range q.readyN {
		ring[i] = *q.readySlot(i)
	}
	q.ready, q.readyAt = ring, 0
	return true
}

// Receive returns the next message, or nil. When done with it, give it back to its kind by Free. In an Ordered queue it
// makes room for more of the peer's messages; the next Write tells the peer, so both ends must call Write.
func (q *Queue) Receive() (Message, *Kind) {
	if q.cfg.Mode == Ordered {
		in, ok := q.turn()
		if !ok {
			return nil, nil
		}
		q.recvNext++
		q.waiting--
		q.received(&in)
		return in.m, in.kind
	}
	if q.readyN == 0 {
		return nil, nil
	}
	in := *q.readySlot(0)
	*q.readySlot(0) = incoming{}
	q.readyAt = (q.readyAt + 1) & (len(q.ready) - 1)
	q.readyN--
	q.received(&in)
	return in.m, in.kind
}

func (q *Queue) received(in *incoming) {
	q.inBits -= int(in.bits)
	q.letGo(in.cost())
}

// creditDue reports whether the peer should be told of room: when a quarter of the window was received since it last
// heard of it, or a sixteenth and there is something to say anyway.
func (q *Queue) creditDue(talking bool) bool {
	if q.cfg.Mode != Ordered {
		return false
	}
	w := int64(q.cfg.Window)
	room := q.recvNext + w
	switch {
	case talking && room-q.told >= max(1, w/16):
		return true
	case room-q.confirmed < max(1, w/4):
		return false
	}
	return room-q.told >= max(1, w/4) || q.told > q.confirmed && q.now-q.toldAt >= q.rtt.wait(q.cfg.Resend)
}

func (q *Queue) writeCredit(w *bitio.Writer, due bool) {
	w.WriteBool(due)
	if due {
		q.told, q.toldAt = q.recvNext+int64(q.cfg.Window), q.now
		w.WriteUint16(seqnum.U16.Truncate(q.told))
	}
}
