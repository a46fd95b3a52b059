package message

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Mode is how a queue delivers.
type Mode uint8

const (
	// Ordered: every message once, in the order sent, sent again until acked.
	Ordered Mode = iota
	// Unordered: each message is sent once; it may be lost, or overtaken.
	Unordered
	// Sequenced: each message is sent once, and one older than the newest received is
	// dropped.
	Sequenced
)

// Config is the settings of a Queue, the same at both ends but for Resend and Budget.
type Config struct {
	Mode  Mode
	Kinds *Registry
	// Window bounds the messages that wait to be sent or acked, and those received before
	// their turn. Default 1024; a power of two, at most 16384.
	Window int
	// Resend is how long a message waits for its ack before it is sent again. Default 100 ms.
	Resend time.Duration
	// MaxBits bounds a message. Default 6000.
	MaxBits int
	// Budget bounds what a packet carries for this queue, in bits. Default 7000.
	Budget int
}

func (c Config) filled() Config {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.Window, 1024)
	set(&c.MaxBits, 6000)
	set(&c.Budget, 7000)
	if c.Resend == 0 {
		c.Resend = 100 * time.Millisecond
	}
	return c
}

// Errors of Send; nothing was queued.
var (
	// ErrFull: too many messages aren't acked yet. Send again later, or less.
	ErrFull = errors.New("message: queue full; wait for acks before sending more")
	// ErrTooLarge: it would never fit a packet. Send it as a block.
	ErrTooLarge = errors.New("message: too large for a packet; send it as a block")
	// ErrKind: the kind is of another registry.
	ErrKind = errors.New("message: kind isn't registered with this queue")
)

// Errors of Read: the peer broke the format, and the connection should end.
var (
	ErrFormat = errors.New("message: malformed")
	ErrWindow = errors.New("message: id beyond the window")
)

// maxPerPacket bounds the messages in a packet.
const maxPerPacket = 64

// packetWindow is how many packets are remembered until their fate is known.
const packetWindow = 512

type outgoing struct {
	m     Message
	kind  *Kind
	bits  int
	at    time.Duration
	sent  bool
	acked bool
}

type incoming struct {
	m    Message
	kind *Kind
}

type packet struct {
	id  int64
	ids []int64
}

// Counters is what a queue did.
type Counters struct {
	Sent, Resent, Acked      uint64 // messages
	Received, Duplicate, Old uint64
	Full                     uint64
}

// Queue is both directions of one end. Not safe for concurrent use.
//
// Invariant: oldest <= next <= oldest+Window; messages oldest..next-1 wait at out[id%Window],
// and those from cursor on haven't been sent yet.
type Queue struct {
	Counters Counters

	cfg          Config
	out          []outgoing
	oldest, next int64
	pending      []int64 // of the packet under construction
	stream       Stream  // kept here, since what Serialize gets would otherwise be allocated
	packets      [packetWindow]packet

	in       []incoming
	recvNext int64 // Ordered: next to deliver; Sequenced: one after the newest
	ready    []incoming
	readyAt  int
}

// New returns a queue. It panics on a Window that isn't a power of two, or without Kinds.
func New(cfg Config) *Queue {
	cfg = cfg.filled()
	if cfg.Window&(cfg.Window-1) != 0 || cfg.Window > 1<<14 || cfg.Window < 1 {
		panic("message: Window must be a power of two up to 16384")
	}
	if cfg.Kinds == nil || len(cfg.Kinds.kinds) == 0 {
		panic("message: Config.Kinds has no kinds; register some first")
	}
	return &Queue{cfg: cfg, out: make([]outgoing, cfg.Window), in: make([]incoming, cfg.Window)}
}

func (q *Queue) at(id int64) *outgoing { return &q.out[id&int64(q.cfg.Window-1)] }

// overheadBits is the most that stands before a message.
const overheadBits = 7 + 17 + 10

// Send queues a message. The queue has it until it is acked, or written when it isn't reliable;
// then it goes back to its kind for reuse.
func (q *Queue) Send(kind *Kind, m Message) error {
	if kind.id >= len(q.cfg.Kinds.kinds) || q.cfg.Kinds.kinds[kind.id] != kind {
		return ErrKind
	}
	if q.next-q.oldest >= int64(q.cfg.Window) {
		q.Counters.Full++
		return ErrFull
	}
	s := &q.stream
	*s = Stream{}
	m.Serialize(s)
	if s.err != nil {
		return fmt.Errorf("%w in a %s", s.err, kind.name)
	}
	if s.bits > q.cfg.MaxBits || s.bits+overheadBits > q.cfg.Budget {
		return fmt.Errorf("%w: a %s of %d bits", ErrTooLarge, kind.name, s.bits)
	}
	*q.at(q.next) = outgoing{m: m, kind: kind, bits: s.bits}
	q.next++
	return nil
}

// Pending is the number of messages that wait to be sent or acked.
func (q *Queue) Pending() int { return int(q.next - q.oldest) }

// Write writes as many messages as are due and fit w and the budget, older first, and returns how
// many. When that is 0, nothing was written.
func (q *Queue) Write(now time.Duration, w *bitio.Writer) int {
	q.pending = q.pending[:0]
	room := min(q.cfg.Budget, w.Free())
	used := 7 + 16
	for id := q.oldest; id < q.next && len(q.pending) < maxPerPacket; id++ {
		o := q.at(id)
		if o.acked || o.sent && now-o.at < q.cfg.Resend {
			continue
		}
		if used+o.bits+overheadBits > room {
			break // a later, smaller one doesn't overtake
		}
		used += o.bits + overheadBits
		q.pending = append(q.pending, id)
	}
	if len(q.pending) == 0 {
		return 0
	}
	w.WriteInt(uint32(len(q.pending)), maxPerPacket+1)
	q.writeMessages(now, w)
	return len(q.pending)
}

func (q *Queue) writeMessages(now time.Duration, w *bitio.Writer) {
	s := &q.stream
	*s = Stream{w: w}
	last := int64(-1)
	for _, id := range q.pending {
		o := q.at(id)
		q.writeID(w, id, last)
		last = id
		w.WriteInt(uint32(o.kind.id), uint32(len(q.cfg.Kinds.kinds)))
		o.m.Serialize(s)
		if o.sent {
			q.Counters.Resent++
		}
		q.Counters.Sent++
		o.sent, o.at = true, now
		if q.cfg.Mode != Ordered {
			q.release(o)
		}
	}
	if q.cfg.Mode != Ordered {
		q.oldest = last + 1
		q.pending = q.pending[:1]
	}
}

func (q *Queue) writeID(w *bitio.Writer, id, last int64) {
	switch {
	case q.cfg.Mode == Unordered:
	case last < 0:
		w.WriteUint16(seqnum.U16.Truncate(id))
	case q.cfg.Mode == Sequenced: // always consecutive
	default:
		w.WriteBool(id == last+1)
		if id != last+1 {
			w.WriteUint16(seqnum.U16.Truncate(id))
		}
	}
}

func (q *Queue) release(o *outgoing) {
	o.kind.Free(o.m)
	*o = outgoing{}
}

// Sent says which packet carries what the last Write wrote. A packet whose fate isn't told until 512
// later ones have left counts as lost.
func (q *Queue) Sent(packetID int64) {
	if q.cfg.Mode != Ordered || len(q.pending) == 0 {
		return
	}
	p := &q.packets[packetID&(packetWindow-1)]
	if p.id != packetID { // a packet may carry what several Writes wrote
		p.id, p.ids = packetID, p.ids[:0]
	}
	p.ids = append(p.ids, q.pending...)
	q.pending = q.pending[:0]
}

// NotSent says that what the last Write wrote never left: it is due again at once.
func (q *Queue) NotSent() {
	for _, id := range q.pending {
		q.at(id).sent = false
	}
	q.pending = q.pending[:0]
}

// Acked says that a packet has arrived, and with it its messages.
func (q *Queue) Acked(packetID int64) {
	p := &q.packets[packetID&(packetWindow-1)]
	if p.id != packetID {
		return
	}
	for _, id := range p.ids {
		if id < q.oldest {
			continue
		}
		if o := q.at(id); !o.acked {
			o.acked = true
			q.Counters.Acked++
		}
	}
	p.ids = p.ids[:0]
	for q.oldest < q.next && q.at(q.oldest).acked {
		q.release(q.at(q.oldest))
		q.oldest++
	}
}

// Lost says that a packet is lost: its messages are due again at once.
func (q *Queue) Lost(packetID int64) {
	p := &q.packets[packetID&(packetWindow-1)]
	if p.id != packetID {
		return
	}
	for _, id := range p.ids {
		if id >= q.oldest {
			q.at(id).at = -q.cfg.Resend
		}
	}
	p.ids = p.ids[:0]
}

// Read takes a packet's messages. An error is the peer's; what came before it in the packet is kept.
func (q *Queue) Read(r *bitio.Reader) error {
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
		m.Serialize(s)
		if err := s.Err(); err != nil {
			k.Free(m)
			return fmt.Errorf("%w: %s: %w", ErrFormat, k.name, err)
		}
		if err := q.take(id, incoming{m, k}); err != nil {
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
		return q.deliver(in)
	case Sequenced:
		if id < q.recvNext {
			q.Counters.Old++
			in.kind.Free(in.m)
			return nil
		}
		q.recvNext = id + 1
		return q.deliver(in)
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
	return nil
}

// deliver queues an unreliable message for Receive. A game that doesn't receive loses the newest.
func (q *Queue) deliver(in incoming) error {
	if len(q.ready)-q.readyAt >= q.cfg.Window {
		q.Counters.Full++
		in.kind.Free(in.m)
		return nil
	}
	if q.readyAt > 0 && len(q.ready) == cap(q.ready) {
		n := copy(q.ready, q.ready[q.readyAt:])
		q.ready, q.readyAt = q.ready[:n], 0
	}
	q.ready = append(q.ready, in)
	return nil
}

// Receive is the next message, or nil. Give it back to its kind with Free when done with it.
func (q *Queue) Receive() (Message, *Kind) {
	if q.cfg.Mode == Ordered {
		slot := &q.in[q.recvNext&int64(q.cfg.Window-1)]
		if slot.m == nil {
			return nil, nil
		}
		in := *slot
		*slot = incoming{}
		q.recvNext++
		return in.m, in.kind
	}
	if q.readyAt == len(q.ready) {
		q.ready, q.readyAt = q.ready[:0], 0
		return nil, nil
	}
	in := q.ready[q.readyAt]
	q.ready[q.readyAt] = incoming{}
	q.readyAt++
	return in.m, in.kind
}
