package simtest

import (
	"encoding/binary"
	"slices"
	"time"
)

// byteStream is one end of a model of TCP, with datagrams as records: segments with the offset of their bytes and a cumulative ack, a congestion window
// (slow start, additive increase, halved by a loss), fast retransmission after three equal acks, and a timer that backs off. It is simpler than a system's TCP
// where that doesn't change what arrives when by much: the other end's window is never full, and segments become small after three time-outs in a row, as
// where the path carries no large ones.
type byteStream struct {
	waiting [][]byte // datagrams before out, which may be dropped
	bytes   int      // of them
	out     []byte   // from una on
	una     uint64   // everything before it was acked
	next    uint64   // what is sent next
	recover uint64   // until it is acked a loss is being mended
	window  float64  // bytes that may be unacked
	start   float64  // slow start ends there
	mss     int
	equal   int           // acks in a row
	resend  bool          // the segment at una is due again
	fast    bool          // recover is of equal acks, not of the timer
	timer   time.Duration // 0: nothing is unacked
	backoff int
	rto     time.Duration
	rtt     time.Duration // smoothed; 0 before the first
	spread  time.Duration
	timed   uint64 // the ack that ends a measurement, 0 none
	timedAt time.Duration

	got  uint64 // everything before it has come
	in   []byte // in order, not popped
	gaps []piece
	acks int // to send
}

// piece is bytes that came before others.
type piece struct {
	at uint64
	p  []byte
}

const (
	segmentData  = 1
	segmentReset = 2
	segmentBytes = 1 + 8 + 8 // its kind, the offset and the ack

	tcpBuffer     = 64 << 10 // in the system
	tcpWaiting    = 64 << 10 // before it, as ServerConfig.SendBuffer of netconn/web
	tcpMostWait   = 512      // datagrams
	tcpSegment    = 1200
	tcpSmall      = 340
	tcpSmallAfter = 3
	tcpFirst      = time.Second // the timer before a round trip is known
	tcpLeast      = 200 * time.Millisecond
	tcpMost       = 3 * time.Second // less than a system's minutes, so that a world settles
)

func newByteStream() *byteStream {
	return &byteStream{window: 10 * tcpSegment, start: 1 << 30, mss: tcpSegment, rto: tcpFirst}
}

// isFirst reports whether a segment is a client's first one.
func isFirst(p []byte) bool {
	return len(p) > segmentBytes && p[0] == segmentData && binary.LittleEndian.Uint64(p[1:]) == 0
}

// push has a datagram wait, and returns how many older ones were dropped for it.
func (s *byteStream) push(p []byte) (dropped int) {
	s.waiting = append(s.waiting, append([]byte(nil), p...))
	s.bytes += len(p)
	for len(s.waiting) > tcpMostWait || s.bytes > tcpWaiting {
		s.bytes -= len(s.waiting[0])
		s.waiting = s.waiting[1:]
		dropped++
	}
	return dropped
}

// pop returns the next datagram that has come whole, or nil.
func (s *byteStream) pop() []byte {
	if len(s.in) < 2 {
		return nil
	}
	n := 2 + int(binary.LittleEndian.Uint16(s.in))
	if len(s.in) < n {
		return nil
	}
	p := s.in[2:n]
	s.in = s.in[n:]
	return p
}

// receive takes a segment.
func (s *byteStream) receive(now time.Duration, p []byte) {
	if len(p) < segmentBytes || p[0] != segmentData {
		return
	}
	at, ack, p := binary.LittleEndian.Uint64(p[1:]), binary.LittleEndian.Uint64(p[9:]), p[segmentBytes:]
	s.acked(now, ack, len(p) == 0)
	if len(p) == 0 {
		return
	}
	s.acks++
	if at > s.got {
		i, there := slices.BinarySearchFunc(s.gaps, at, func(g piece, at uint64) int {
			if g.at < at {
				return -1
			}
			return int(min(g.at-at, 1))
		})
		if !there && at-s.got < 2*tcpBuffer {
			s.gaps = slices.Insert(s.gaps, i, piece{at, append([]byte(nil), p...)})
		}
		return
	}
	s.take(at, p)
	for len(s.gaps) > 0 && s.gaps[0].at <= s.got {
		s.take(s.gaps[0].at, s.gaps[0].p)
		s.gaps = s.gaps[1:]
	}
}

// take appends what is new of bytes at an offset up to got.
func (s *byteStream) take(at uint64, p []byte) {
	if old := s.got - at; old < uint64(len(p)) {
		s.in = append(s.in, p[old:]...)
		s.got = at + uint64(len(p))
	}
}

// acked notes an ack. alone: its segment had nothing else.
func (s *byteStream) acked(now time.Duration, ack uint64, alone bool) {
	flight := float64(s.next - s.una)
	switch {
	case ack > s.una && ack-s.una <= uint64(len(s.out)):
		if s.timed > 0 && ack >= s.timed {
			s.measured(now - s.timedAt)
			s.timed = 0
		}
		s.out = s.out[ack-s.una:]
		s.una, s.next = ack, max(s.next, ack)
		s.equal, s.backoff = 0, 0
		switch {
		case s.fast && s.una < s.recover:
			s.resend = true // what comes next was lost too
		case s.window < s.start:
			s.window += float64(s.mss)
		default:
			s.window += float64(s.mss) * float64(s.mss) / s.window
		}
		s.window = min(s.window, 4*tcpBuffer)
		s.timer = 0
		if s.next > s.una {
			s.timer = now + s.rto
		}
	case ack == s.una && alone && s.next > s.una:
		if s.equal++; s.equal == 3 && s.una >= s.recover {
			s.start = max(flight/2, 2*float64(s.mss))
			s.window, s.recover, s.resend, s.fast = s.start, s.next, true, true
		}
	}
}

// measured takes a round trip (RFC 6298).
func (s *byteStream) measured(rtt time.Duration) {
	if s.rtt == 0 {
		s.rtt, s.spread = rtt, rtt/2
	} else {
		s.spread += (max(s.rtt-rtt, rtt-s.rtt) - s.spread) / 4
		s.rtt += (rtt - s.rtt) / 8
	}
	s.rto = min(max(s.rtt+4*s.spread, tcpLeast), tcpMost)
}

// work sends what may be sent.
func (s *byteStream) work(now time.Duration, send func(p []byte)) {
	for len(s.waiting) > 0 && len(s.out) < tcpBuffer {
		p := s.waiting[0]
		s.waiting, s.bytes = s.waiting[1:], s.bytes-len(p)
		s.out = append(binary.LittleEndian.AppendUint16(s.out, uint16(len(p))), p...)
	}
	if s.timer > 0 && now >= s.timer {
		s.backoff++
		s.start = max(float64(s.next-s.una)/2, 2*float64(s.mss))
		if s.backoff >= tcpSmallAfter {
			s.mss = tcpSmall
		}
		s.window, s.next, s.recover, s.equal, s.timed, s.timer, s.resend, s.fast = float64(s.mss), s.una, s.next, 0, 0, 0, false, false
	}
	segment := func(at uint64) int {
		n := min(s.mss, len(s.out)-int(at-s.una))
		from := int(at - s.una)
		send(append(s.header(at), s.out[from:from+n]...))
		return n
	}
	if s.resend && len(s.out) > 0 {
		segment(s.una)
		s.timed, s.resend = 0, false
	}
	for int(s.next-s.una) < len(s.out) && float64(s.next-s.una) < s.window && (s.una > 0 || s.next == 0) { // the first one alone, as a handshake
		n := segment(s.next)
		if s.timed == 0 && s.next >= s.recover {
			s.timed, s.timedAt = s.next+uint64(n), now
		}
		s.next += uint64(n)
		if s.timer == 0 {
			s.timer = now + min(s.rto<<min(s.backoff, 8), tcpMost)
		}
	}
	for range s.acks { // by themselves, so that the other end can count equal ones
		send(s.header(s.next))
	}
	s.acks = 0
}

func (s *byteStream) header(at uint64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{segmentData}, at)
	return binary.LittleEndian.AppendUint64(b, s.got)
}
