package ackbits

import (
	"time"

	"github.com/bunchnet/bunchnet/history/ring"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Handler hears what became of each packet. It is the same set of methods as
// packetnotify.Handler, so one type serves both.
type Handler interface {
	// PacketAcked: the peer received packet id. At most once for an id.
	PacketAcked(id int64)
	// PacketLost: packet id wasn't acked in time. At most once for an id, never after
	// PacketAcked, but an ack may still follow. It must not call Send, which panics then: where the window is full each packet sent
	// has another one count as lost. Remember what is lost, and send it again later.
	PacketLost(id int64)
}

// sentPacket is what an ack needs to know.
type sentPacket struct {
	at    time.Duration
	bytes int // header included
	acked bool
}

// Endpoint is one end of an exchange of packets. Not safe for concurrent use.
//
// Invariant: undecided <= next, next-undecided <= Window; all before undecided are
// acked or counted lost.
type Endpoint struct {
	cfg     Config
	handler Handler

	sent      *ring.Ring[sentPacket]
	received  *ring.Ring[struct{}]
	next      int64 // id of the next packet
	undecided int64 // oldest packet that isn't counted as delivered or lost
	telling   bool  // within PacketLost

	stats Stats
	meter meter
}

// New returns an Endpoint that tells handler; a nil one is told nothing.
func New(cfg Config, handler Handler) (*Endpoint, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	if handler == nil {
		handler = deaf{}
	}
	return &Endpoint{
		cfg:      cfg,
		handler:  handler,
		sent:     ring.New[sentPacket](cfg.Window),
		received: ring.New[struct{}](cfg.Window),
		meter:    meter{weight: cfg.Smoothing},
	}, nil
}

type deaf struct{}

func (deaf) PacketAcked(int64) {}
func (deaf) PacketLost(int64)  {}

// NextID is the id that the next Send returns.
func (e *Endpoint) NextID() int64 { return e.next }

// Send appends the header of the next packet to dst and notes that it is sent now with
// payloadBytes after the header. It may call PacketLost, of the packet that
// leaves the window. It panics within PacketLost.
func (e *Endpoint) Send(now time.Duration, dst []byte, payloadBytes int) (packet []byte, id int64) {
	if e.telling {
		panic("ackbits: Send was called within PacketLost; remember what is lost, and send it again later")
	}
	id = e.next
	if id-e.undecided >= int64(e.cfg.Window) {
		e.decide(e.undecided)
	}
	e.next++
	bytes := HeaderBytes + payloadBytes
	*e.sent.Insert(id) = sentPacket{at: now, bytes: bytes}
	e.stats.PacketsSent++
	e.stats.BytesSent += uint64(bytes)
	e.meter.sent += bytes
	e.meter.advance(now)
	return e.header(id).Append(dst), id
}

// header is what packet id says about the packets received.
func (e *Endpoint) header(id int64) Header {
	h := Header{Seq: seqnum.U16.Truncate(id), Ack: 0xffff}
	newest, any := e.received.Newest()
	if !any {
		return h
	}
	h.Ack = seqnum.U16.Truncate(newest)
	for n := int64(0); n < ackedBits; n++ {
		if e.received.Lookup(newest-n) != nil {
			h.AckBits |= 1 << n
		}
	}
	return h
}

// Receive takes a packet of the peer, calls PacketAcked for what it acks, and returns its
// payload, which aliases p, and its id. After an error nothing has changed but a counter.
func (e *Endpoint) Receive(now time.Duration, p []byte) (payload []byte, id int64, err error) {
	h, payload, ok := ParseHeader(p)
	if !ok {
		e.stats.RefusedShort++
		return nil, 0, ErrShort
	}
	newest, _ := e.received.Newest()
	id = seqnum.U16.Expand(h.Seq, newest)
	ack := seqnum.U16.Expand(h.Ack, e.next-1)
	switch {
	case id < 0 || id <= newest-int64(e.cfg.Window):
		e.stats.RefusedStale++
		return nil, 0, ErrStale
	case e.received.Lookup(id) != nil:
		e.stats.RefusedDuplicate++
		return nil, 0, ErrDuplicate
	case ack >= e.next && h.AckBits != 0:
		e.stats.RefusedAckAhead++
		return nil, 0, ErrAckAhead
	}
	e.received.Insert(id)
	e.stats.PacketsReceived++
	e.stats.BytesReceived += uint64(len(p))
	e.meter.received += len(p)
	e.acks(now, ack, h.AckBits)
	e.meter.advance(now)
	return payload, id, nil
}

// acks tells about the packets that bits ack, in rising order.
func (e *Endpoint) acks(now time.Duration, ack int64, bits uint32) {
	var newest time.Duration
	news := false
	for n := int64(ackedBits - 1); n >= 0; n-- {
		if bits>>n&1 == 0 {
			continue
		}
		s := e.sent.Lookup(ack - n)
		if s == nil || s.acked {
			continue
		}
		s.acked = true
		newest, news = s.at, true
		e.stats.PacketsAcked++
		e.stats.BytesAcked += uint64(s.bytes)
		if ack-n < e.undecided {
			e.stats.AckedLate++
		}
		e.meter.acked += s.bytes
		e.handler.PacketAcked(ack - n)
	}
	// An ack that had to be repeated says nothing about the round trip; that
	// of the newest packet is the one least delayed.
	if news {
		e.meter.roundTrip(now - newest)
	}
}

// Acked reports whether packet id was acked; false as well when it left the window.
func (e *Endpoint) Acked(id int64) bool {
	s := e.sent.Lookup(id)
	return s != nil && s.acked
}

// Tick counts packets as lost that are older than LossAfter, and moves the averages on.
// Call it some ten times a second or at NextDeadline.
func (e *Endpoint) Tick(now time.Duration) {
	for e.undecided < e.next && now-e.sent.Lookup(e.undecided).at >= e.cfg.LossAfter {
		e.decide(e.undecided)
	}
	e.meter.advance(now)
}

// decide closes the count of packet id, the oldest that is open.
func (e *Endpoint) decide(id int64) {
	e.undecided = id + 1
	lost := !e.sent.Lookup(id).acked
	e.meter.loss.push(lost)
	if lost {
		e.stats.PacketsLost++
		e.telling = true
		defer func() { e.telling = false }()
		e.handler.PacketLost(id)
	}
}

// NextDeadline is when Tick has the next packet to count, if there is one.
func (e *Endpoint) NextDeadline() (time.Duration, bool) {
	if e.undecided == e.next {
		return 0, false
	}
	return e.sent.Lookup(e.undecided).at + e.cfg.LossAfter, true
}
