package message

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Read takes a packet's messages. An error is the peer's; what came before it in the packet is kept.
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
		m.Serialize(s)
		bits := before - r.Remaining()
		err := s.Err()
		if err == nil && bits > q.cfg.MaxBits {
			err = ErrTooLarge
		}
		if err != nil {
			k.Free(m)
			return fmt.Errorf("%w: %s: %w", ErrFormat, k.name, err)
		}
		if err := q.take(id, incoming{m, k, bits}); err != nil {
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
	slot := &q.in[id&int64(q.cfg.Window-1)]
	switch {
	case id >= q.recvNext+int64(q.cfg.Window):
		in.kind.Free(in.m)
		return ErrWindow
	case id < q.recvNext || slot.m != nil:
		q.Counters.Duplicate++
		in.kind.Free(in.m)
		return nil
	}
	*slot = in
	q.inBits += in.bits
	return nil
}

// deliver queues an unreliable message for Receive. A game that doesn't receive loses some: the oldest of a
// queue that is Sequenced, otherwise the newest.
func (q *Queue) deliver(in incoming) {
	if len(q.ready)-q.readyAt >= q.cfg.Window {
		q.Counters.Dropped++
		if q.cfg.Mode == Unordered {
			in.kind.Free(in.m)
			return
		}
		m, k := q.Receive()
		k.Free(m)
	}
	if q.readyAt > 0 && len(q.ready) == cap(q.ready) {
		n := copy(q.ready, q.ready[q.readyAt:])
		clear(q.ready[n:])
		q.ready, q.readyAt = q.ready[:n], 0
	}
	q.inBits += in.bits
	q.ready = append(q.ready, in)
}

// Receive is the next message, or nil. Give it back to its kind with Free when done with it. In an Ordered
// queue it makes room for more of the peer's, which the next Write tells: both ends have to call Write.
func (q *Queue) Receive() (Message, *Kind) {
	if q.cfg.Mode == Ordered {
		slot := &q.in[q.recvNext&int64(q.cfg.Window-1)]
		if slot.m == nil {
			return nil, nil
		}
		in := *slot
		*slot = incoming{}
		q.recvNext++
		q.inBits -= in.bits
		return in.m, in.kind
	}
	if q.readyAt == len(q.ready) {
		q.ready, q.readyAt = q.ready[:0], 0
		return nil, nil
	}
	in := q.ready[q.readyAt]
	q.ready[q.readyAt] = incoming{}
	q.readyAt++
	q.inBits -= in.bits
	return in.m, in.kind
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
