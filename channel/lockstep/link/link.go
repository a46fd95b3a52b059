package link

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/clock"
	"github.com/bunchnet/bunchnet/history/ring"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// Handler gets the datagrams and messages of a Link. It may call Send, but not Receive or Tick.
type Handler interface {
	// Datagram sends p to the peer. p is valid until the call returns.
	Datagram(p []byte)
	// Message gets the peer's next message. msg is valid until the call returns.
	Message(msg []byte)
}

// outMessage waits for its ack.
type outMessage struct {
	due, sentAt, rto time.Duration
	sends            uint32
	size             uint8
	data             [MaxMessage]byte
}

// inMessage waits for older ones.
type inMessage struct {
	size uint8
	data [MaxMessage]byte
}

// Link is one end of a link. Not safe for concurrent use.
//
// Invariant: base <= unsent <= next <= base+Window, and out holds [base, next); in holds only ids in
// (recvNext, recvNext+Window).
type Link struct {
	cfg     Config
	handler Handler
	clock   clock.Clock
	crcInit uint16

	out        *ring.Ring[outMessage]
	base, next int64 // oldest that isn't acked; next to be numbered
	unsent     int64 // oldest that never went out
	in         *ring.Ring[inMessage]
	recvNext   int64

	rtt       roundTrip
	pings     pings
	nextPing  time.Duration
	answer    uint16
	ackDue    time.Duration
	ackWanted bool
	lastHeard time.Duration

	window  window
	blocked bool          // messages are due that the window holds back
	nextDue time.Duration // of [base, next), at the latest
	due     []int64
	buf     []byte
	stats   Stats
}

// Stats counts since New, and has the measured round trip.
type Stats struct {
	MessagesSent, MessagesResent, MessagesAcked  uint64
	MessagesReceived                             uint64 // delivered in order
	DroppedDuplicate, DroppedBeyond              uint64 // messages received before; beyond the window
	DatagramsSent, DatagramsReceived             uint64
	BytesSent, BytesReceived                     uint64
	PingsSent, AcksSent                          uint64 // datagrams of these types
	RefusedFull, RefusedTooLarge                 uint64 // by Send
	RefusedShort, RefusedChecksum, RefusedHeader uint64
	RefusedLength, RefusedAckAhead               uint64
	SRTT, RTTVar, RTO                            time.Duration // SRTT is 0 before a sample
	Unacked                                      int           // messages
}

// longAgo is before all that any clock says.
const longAgo = time.Duration(math.MinInt64 / 2)

// New returns a Link. The error is ErrConfig.
func New(cfg Config, handler Handler) (*Link, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	return &Link{
		cfg:     cfg,
		handler: handler,
		crcInit: cfg.crcInit(),
		out:     ring.New[outMessage](cfg.Window),
		in:      ring.New[inMessage](cfg.Window),
		due:     make([]int64, 0, cfg.Window),
		window:  newWindow(&cfg),
		buf:     make([]byte, cfg.MTU),

		nextPing: longAgo,
	}, nil
}

// Send queues msg for the next Tick; the bytes are copied. Errors: ErrTooLarge, ErrFull.
func (l *Link) Send(now time.Duration, msg []byte) error {
	if len(msg) > MaxMessage {
		l.stats.RefusedTooLarge++
		return ErrTooLarge
	}
	if l.next-l.base >= int64(l.cfg.Window) {
		l.stats.RefusedFull++
		return ErrFull
	}
	now = l.clock.At(now)
	m := l.out.Insert(l.next)
	m.due, m.size = now, uint8(len(msg))
	copy(m.data[:], msg)
	if l.next == l.base {
		l.nextDue = now
	}
	l.nextDue = min(l.nextDue, now)
	l.next++
	l.stats.MessagesSent++
	return nil
}

// Free is the number of messages that Send has room for.
func (l *Link) Free() int { return l.cfg.Window - int(l.next-l.base) }

// MaxPacket is MaxMessage. With Reliable and Ready it is for lockstep.Transport.
func (l *Link) MaxPacket() int { return MaxMessage }

// Reliable reports true: all messages are delivered, in order.
func (l *Link) Reliable() bool { return true }

// Ready reports whether no message waits for the window, and fewer than half of Window messages aren't acked.
func (l *Link) Ready() bool { return !l.blocked && 2*l.Free() > l.cfg.Window }

// LastHeard is when the last valid datagram was received; 0 before the first. A Link has no timeout: the caller decides
// when the peer is gone.
func (l *Link) LastHeard() time.Duration {
	if l.stats.DatagramsReceived == 0 {
		return 0
	}
	return l.clock.Outside(l.lastHeard)
}

// Stats returns the counts so far, and the round trip.
func (l *Link) Stats() Stats {
	s := l.stats
	s.SRTT, s.RTTVar, s.RTO = l.rtt.srtt, l.rtt.rttvar, l.rtt.rto(&l.cfg)
	s.Unacked = int(l.next - l.base)
	return s
}

// NextDeadline is when Tick must be called next; ok is false when nothing is due.
func (l *Link) NextDeadline() (at time.Duration, ok bool) {
	earliest := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if l.base < l.next {
		earliest(l.nextDue)
	}
	if l.ackWanted {
		earliest(l.ackDue)
	}
	if l.cfg.PingInterval > 0 {
		earliest(l.nextPing)
	}
	return l.clock.Outside(at), ok
}

func truncate(id int64) uint16 { return seqnum.U16.Truncate(id) }
