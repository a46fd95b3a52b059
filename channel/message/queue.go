package message

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Mode says how a queue delivers messages.
type Mode uint8

const (
	// Ordered delivers every message once, in the order sent. Messages are sent again until acked.
	Ordered Mode = iota
	// Unordered sends each message once. It may be lost or overtaken. The most urgent are sent first; see Kind.Slack.
	Unordered
	// Sequenced sends each message once. The receiver drops messages older than the newest received.
	Sequenced
)

// Config configures a Queue. Both ends need the same values, except for Resend and Budget.
type Config struct {
	// Mode is how messages are delivered. Default Ordered.
	Mode Mode
	// Kinds has the kinds of messages. Needed.
	Kinds *Registry
	// Window bounds the messages that wait to be sent or acked, and the received messages that wait for Receive: a power
	// of two, 1 to 16384. Default 1024.
	Window int
	// Resend is the least time that a message waits for its ack before it is sent again. It waits longer, up to 2 s, when
	// acks take longer. A message known to be lost is sent again at once. Default 100 ms, 1 ms to 1 h.
	Resend time.Duration
	// MaxBits bounds a message, in bits, 8 to 524280. Default 6000. A peer can make a queue hold Window messages of that size.
	MaxBits int
	// Budget bounds the bits of this queue in a packet, 56 to 524280: telling the peer of room needs the least. Default 7000; with Attach it and MaxBits are
	// 8192 at most, whatever they say, since a bunch has no room for more, and where a packet has less room than Budget only a single message uses more.
	Budget int
}

const defaultResend = 100 * time.Millisecond

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
		c.Resend = defaultResend
	}
	return c
}

// ErrConfig is wrapped by what New and NewBlocks panic with.
var ErrConfig = errors.New("message: config")

func (c *Config) validate() error {
	switch {
	case c.Mode > Sequenced:
		return fmt.Errorf("%w: Mode %d is none of Ordered, Unordered and Sequenced", ErrConfig, c.Mode)
	case c.Kinds == nil || len(c.Kinds.kinds) == 0:
		return fmt.Errorf("%w: Kinds has no kinds; register some first", ErrConfig)
	case c.Window < 1 || c.Window > 1<<14 || c.Window&(c.Window-1) != 0:
		return fmt.Errorf("%w: Window %d must be a power of two from 1 to %d", ErrConfig, c.Window, 1<<14)
	case c.Resend < time.Millisecond || c.Resend > time.Hour:
		return fmt.Errorf("%w: Resend %v must be from 1ms to 1h", ErrConfig, c.Resend)
	case c.MaxBits < leastBits || c.MaxBits > maxMessageBits:
		return fmt.Errorf("%w: MaxBits %d must be from %d to %d", ErrConfig, c.MaxBits, leastBits, maxMessageBits)
	case c.Budget < headerBits || c.Budget > maxMessageBits: // with less no credit would leave, and the peer would wait for ever
		return fmt.Errorf("%w: Budget %d must be from %d to %d", ErrConfig, c.Budget, headerBits, maxMessageBits)
	}
	return nil
}

// maxMessageBits is the largest datagram that there is.
const maxMessageBits = 65535 * 8

// Errors of Send. Nothing was queued.
var (
	// ErrFull: Window messages wait to be sent or acked. Send again later, or send fewer. Its text says when the peer has all that it has room
	// for, because its game doesn't call Receive, and when packets with messages are lost or refused one after another.
	ErrFull = errors.New("message: queue full; send again later, or send fewer")
	// ErrTooLarge: the message is over MaxBits, or doesn't fit Budget. Send it as a block.
	ErrTooLarge = errors.New("message: too large for a packet; send it as a block")
	// ErrKind: the kind belongs to another registry, or the message isn't of the kind's type.
	ErrKind = errors.New("message: not a message of a kind that is registered with this queue")
	// ErrClosed: the channel of an Attached, or its connection, is closed or about to be.
	ErrClosed = errors.New("message: the channel is closed")
)

// errNotTaken is ErrFull when no ack makes room: all that the peer has room for is acked.
var errNotTaken = fmt.Errorf("%w: the peer has a Window of messages, and hasn't said yet that its game took some, as for a round trip where Window is small; does it call Receive?", ErrFull)

// errInVain is ErrFull when packets with messages were lost one after another: mostly the peer refuses them.
var errInVain = fmt.Errorf("%w: nothing arrives; the peer may have no memory for more, as its game doesn't call Receive", ErrFull)

// Errors of Read. The peer broke the format, and the connection should end.
var (
	// ErrFormat: the bits can't be read as messages of this queue.
	ErrFormat = errors.New("message: malformed, or the ends' Config or kinds differ")
	// ErrWindow: the peer sent a message, or credit, beyond Config.Window.
	ErrWindow = errors.New("message: id beyond Config.Window; both ends need the same")
)

// maxPerPacket bounds the messages in a packet.
const maxPerPacket = 64

// leastRing is how many messages a queue has room for at first. It grows to Config.Window.
const leastRing = 16

// outgoing is a message that waits to be sent or acked.
type outgoing struct {
	e     *Encoded
	at    time.Duration // when it was last sent, longAgo when that was lost; Unordered: when it should be at the latest
	seq   int64         // Unordered: breaks ties of at
	sent  bool
	acked bool
}

// longAgo is before any wait.
const longAgo = time.Duration(math.MinInt64 / 2)

// incoming is a message that waits for Receive.
type incoming struct {
	m     Message
	kind  *Kind
	bits  int32
	spare int32 // bytes that its fields have room for beyond these, as it is a used one; reserved: it is in the room of Queue.reserve
}

const reserved = -1

// Counters counts a queue's messages.
type Counters struct {
	Sent, Resent, Acked      uint64 // messages
	Received, Duplicate, Old uint64
	Full                     uint64 // Send returned ErrFull
	Dropped                  uint64 // received unreliable messages without room: Window waited for Receive, or the queue's share of MaxMemory was used up
	Refused                  uint64 // received Ordered messages without room within MaxMemory: they come again
	NoRoom                   uint64 // times a message was due but larger than all the room of a Write
}

// Queue is both directions of one end. Not safe for concurrent use.
//
// Invariant: oldest <= next <= oldest+Window; unless the mode is Unordered, messages oldest..next-1 wait at out[id%len(out)]. In Ordered queues in has
// those from recvNext on that have come at in[id%len(in)], and far has those that were beyond it.
// recvNext+Window is the peer's credit: confirmed <= told <= recvNext+Window.
type Queue struct {
	Counters Counters

	cfg          Config
	now          time.Duration // of the last Write
	out          []outgoing
	oldest, next int64
	urgent       urgent // Unordered
	credit       int64  // the peer takes messages below this id
	pending      []int64
	chosen       []outgoing      // Unordered: what the last Write wrote
	flying       inFlight[int64] // ids
	rtt          roundTrip
	outBytes     int
	largest      int // bits of the largest message that it was given

	in              []incoming
	far             map[int64]*page
	farRoom         int        // the most pages that it has had, as a map doesn't shrink; 0 when it is nil
	recvNext        int64      // Ordered: next to deliver; Sequenced: one after the newest
	waiting         int        // messages in it
	ready           []incoming // Unordered and Sequenced: a ring whose size is a power of two, or 0
	readyAt, readyN int        // the oldest message in it, and how many there are
	inBits          int
	waitBytes       int   // that messages which wait count
	told, confirmed int64 // credit given, and known to have arrived
	toldAt          time.Duration
	wroteCredit     bool // the last Write told it
	single          int  // bits that one packet has room for; 0: no bound
	most            int  // bits that the last Write had room for
	vain            vain
	stream          Stream // kept here, since what Serialize gets would otherwise be allocated
	used            bool   // it has, or had, a channel
	memory          memory // counts what the peer makes this end hold; nil: nobody does
}

// New returns a queue. It panics when Window isn't a power of two up to 16384, when Kinds is nil or empty, and when another
// setting can't be: a Mode that doesn't exist, or a Resend, MaxBits or Budget out of its range.
func New(cfg Config) *Queue {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		panic(err)
	}
	w := int64(cfg.Window)
	return &Queue{cfg: cfg, credit: w, told: w, confirmed: w, vain: vain{reach: cfg.Window}}
}

func (q *Queue) at(id int64) *outgoing { return &q.out[id&int64(len(q.out)-1)] }

// growOut makes room for one more message to be sent.
func (q *Queue) growOut() {
	old := q.out
	q.out = make([]outgoing, min(max(2*len(old), leastRing), q.cfg.Window))
	for id := q.oldest; id < q.next; id++ {
		*q.at(id) = old[id&int64(len(old)-1)]
	}
}

// overheadBits is the most that stands before a message, headerBits before the first.
const (
	overheadBits = 17 + 10
	headerBits   = 1 + 16 + 7 + 32
)

// Send encodes m and queues it. The caller keeps m. Errors: ErrKind, ErrFull, ErrTooLarge, or Kind.Encode's.
func (q *Queue) Send(kind *Kind, m Message) error {
	if err := q.check(kind); err != nil {
		return err
	}
	e, err := kind.Encode(m)
	if err != nil {
		return err
	}
	err = q.SendEncoded(e)
	e.Release()
	return err
}

// SendEncoded queues a message encoded by [Kind.Encode]. It panics when e has no reference left. Errors: ErrKind, ErrFull,
// ErrTooLarge.
func (q *Queue) SendEncoded(e *Encoded) error {
	e.mustBeHeld()
	if err := q.check(e.kind); err != nil {
		return err
	}
	if q.tooLarge(e.bits) {
		return fmt.Errorf("%w: a %s of %d bits", ErrTooLarge, e.kind.name, e.bits)
	}
	e.refs++
	q.largest = max(q.largest, e.bits)
	q.outBytes += len(e.buf)
	if q.cfg.Mode == Unordered {
		q.urgent.push(outgoing{e: e, at: q.now + min(e.kind.Slack, math.MaxInt64-max(q.now, 0)), seq: q.next})
	} else {
		if int(q.next-q.oldest) == len(q.out) {
			q.growOut()
		}
		*q.at(q.next) = outgoing{e: e}
	}
	q.next++
	return nil
}

// tooLarge reports whether a message of so many bits is refused.
func (q *Queue) tooLarge(bits int) bool {
	return bits > q.cfg.MaxBits || headerBits+overheadBits+bits > q.cfg.Budget
}

func (q *Queue) check(kind *Kind) error {
	if kind.id >= len(q.cfg.Kinds.kinds) || q.cfg.Kinds.kinds[kind.id] != kind {
		return ErrKind
	}
	if q.Pending() >= q.cfg.Window {
		q.Counters.Full++
		if q.cfg.Mode == Ordered && q.oldest >= q.credit {
			return errNotTaken
		}
		if q.vain.rounds >= manyVain {
			return errInVain
		}
		return ErrFull
	}
	return nil
}

// Pending is the number of messages that wait to be sent or acked.
func (q *Queue) Pending() int {
	if q.cfg.Mode == Unordered {
		return len(q.urgent) + len(q.chosen)
	}
	return int(q.next - q.oldest)
}

// Held is the encoded bytes of all messages that wait to be sent, to be acked, or for Receive.
func (q *Queue) Held() int { return q.outBytes + (q.inBits+7)/8 }

// Forget drops all messages that wait to be sent or acked, and returns how many: the peer may never receive these. In an Ordered queue
// they include those that arrived behind a missing one.
func (q *Queue) Forget() (unacked int) {
	q.left()
	unacked = q.Pending()
	for id := q.oldest; q.cfg.Mode != Unordered && id < q.next; id++ {
		q.release(q.at(id))
	}
	for i := range q.urgent {
		q.release(&q.urgent[i])
	}
	q.urgent, q.oldest = nil, q.next
	return unacked
}

func (q *Queue) release(o *outgoing) {
	if o.e != nil {
		q.outBytes -= len(o.e.buf)
		o.e.Release()
	}
	*o = outgoing{}
}
