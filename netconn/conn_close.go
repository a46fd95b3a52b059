package netconn

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// CloseCode says why a connection ended.
type CloseCode uint8

// The codes.
const (
	Running      CloseCode = iota // it hasn't ended
	ClosedByUs                    // Close was called
	ClosedByPeer                  // the peer closed channel 0, or its link
	TimedOut                      // nothing was received for Timeout, or the link lost the peer; see Err
	PeerBroke                     // the peer broke a rule of the protocol; see Err
	WeBroke                       // a bound of this end was exceeded with CloseOnOverflow, or a handler panicked; see Err
	PathNarrow                    // the path loses all packets above some size, reliable bunches among them; see Err
)

// String describes the code in a few words.
func (c CloseCode) String() string {
	switch c {
	case Running:
		return "running"
	case ClosedByUs:
		return "closed by us"
	case ClosedByPeer:
		return "closed by the peer"
	case TimedOut:
		return "timed out"
	case PeerBroke:
		return "the peer broke the protocol"
	case WeBroke:
		return "closed by a failure of ours"
	case PathNarrow:
		return "the path loses large packets"
	}
	return fmt.Sprintf("CloseCode(%d)", uint8(c))
}

// CloseResult says why a connection ended, which end ended it, and what was lost.
type CloseResult struct {
	Code CloseCode
	// Reason is the text given to Close, or the peer's text, unchanged: it may contain control characters. String escapes them.
	Reason string
	// PeerReason is the peer's text when this end closed, and the peer as well, unchanged like Reason.
	PeerReason string
	// Err is the broken rule for PeerBroke and WeBroke, and what was measured for TimedOut and PathNarrow.
	Err error
	// Unacked is the number of reliable bunches that the peer may not have received. Undelivered lists them by channel. What
	// a channel.Finisher couldn't send counts as one bunch, where the connection was closed in order; where it ended otherwise, as by a timeout, what waits in a queue or a stream isn't counted.
	Unacked     int
	Undelivered []channel.Undelivered
	// Silence is how long nothing was received before the end.
	Silence time.Duration
}

// String describes the result in a sentence of printable characters.
func (r CloseResult) String() string {
	s := r.Code.String()
	if reason := bitio.Printable(r.Reason); reason != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), reason)) {
		s += ": " + reason
	}
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	if r.PeerReason != "" {
		s += "; the peer closed too: " + bitio.Printable(r.PeerReason)
	}
	if r.Unacked > 0 {
		s += fmt.Sprintf(" (reliable bunches unacked: %d)", r.Unacked)
	}
	return s
}

type closer struct {
	result     CloseResult
	closing    bool
	reason     string
	deadline   time.Duration
	looked     time.Duration // when a packet last had the Finishers asked
	lookDue    bool          // another came soon after
	peerReason string
	endedAt    time.Duration
	answers    int           // to bunches that came after that
	emptyAt    time.Duration // from when on an empty packet has an answer again
	hushedFrom uint64        // the bytes sent when the end came near; see hush

	lastWords   bool  // they are being sent
	inPacket    bool  // a packet is being processed
	whole       bool  // that packet was processed to its end
	panicked    bool  // a handler did, within a packet
	controlGone bool  // channel 0 is closed
	early       int64 // the packet whose bunches were taken before its turn last
	goneWith    int64 // the packet that closed channel 0; the connection ends once it is acked
}

// Closed reports whether the connection has ended.
func (c *Conn) Closed() bool { return c.closer.result.Code != Running }

// Result says why the connection ended; its Code is Running until then.
func (c *Conn) Result() CloseResult { return c.closer.result }

// Closing reports whether Close was called.
func (c *Conn) Closing() bool { return c.closer.closing }

// Close ends the connection in order. Nothing more can be sent. What was sent before on any channel is delivered, and what
// a channel.Finisher has left, then the peer is told. The connection ends when the peer has acked that, or after LingerTimeout; until then call Tick, and
// bunches that arrive are still delivered. The result lists what wasn't acked. An end without a channel 0 opens one to say so, except with Unreal's protocols: what
// the peer sends on its own channel 0 before it hears of that is acked, and nobody gets it: the peer's result lists it. reason isn't sent to the peer: for that
// send it on the control channel first, or call CloseWithReason of a driver's Conn.
func (c *Conn) Close(now time.Duration, reason string) {
	c.now = max(c.now, now)
	if c.Closed() || c.closer.closing {
		return
	}
	c.closer.closing, c.closer.reason, c.closer.deadline = true, reason, c.now+c.cfg.LingerTimeout
	c.channels.Shut()
	c.closeWhenDrained()
}

// closeWhenDrained closes channel 0 once everything else is sent and acked.
func (c *Conn) closeWhenDrained() {
	if c.Closed() || c.closer.controlGone || !c.drained() || c.Closed() { // by a Finisher
		return
	}
	if !c.closesControl() || c.channels.CloseControl() != nil {
		c.FlushNet() // unreliable bunches may be in it
		c.end(ClosedByUs, nil)
	}
}

// looksApart is how long after a packet had the Finishers asked others have them asked again, besides the tick. So a peer's packets cost little, however many Finishers there are
// and though each packet comes at a time of its own.
const looksApart = 4 * time.Millisecond

// lookWhetherDrained is closeWhenDrained behind a packet, or soon.
func (c *Conn) lookWhetherDrained() {
	if c.closer.lookDue = c.now-c.closer.looked < looksApart; !c.closer.lookDue {
		c.closer.looked = c.now
		c.closeWhenDrained()
	}
}

// drained reports whether everything is sent and acked, and asks the Finishers. One that panics isn't asked again and again, as others would wait for that.
func (c *Conn) drained() (all bool) {
	whole := false
	defer func() { c.closer.panicked = c.closer.panicked || !whole }()
	all = c.channels.Drained()
	whole = true
	return all
}

// closesControl reports whether there is a channel 0 to close, or one can be opened for it.
func (c *Conn) closesControl() bool { return c.Channel(0) != nil || !c.cfg.Protocol.Unreal }

// Abort ends the connection at once, after last packets with a close of channel 0 and what of that channel isn't acked, some 16 KiB at most. After Close the result has the reason given to that.
func (c *Conn) Abort(now time.Duration, reason string) {
	c.now = max(c.now, now)
	if c.Closed() {
		return
	}
	if !c.closer.closing {
		c.closer.reason = reason
	}
	c.lastWords()
	c.end(ClosedByUs, nil)
}

// LinkClosed says that the link below reports the peer as gone.
func (c *Conn) LinkClosed(now time.Duration, reason string) {
	c.takeHeld(now)
	c.peerGone(reason)
}

// LinkLost says that the link below has lost the peer, which hasn't said that it leaves: it may come back by another connection. It is as if nothing had been
// received for Timeout, and why is the result's Err.
func (c *Conn) LinkLost(now time.Duration, why error) {
	c.takeHeld(now)
	if c.closer.closing || c.closer.peerReason != "" { // maybe in what was held back
		c.peerGone(why.Error())
	} else {
		c.end(TimedOut, why)
	}
}

// takeHeld processes what is held back, as nothing comes any more that it waits for, unless a handler has panicked.
func (c *Conn) takeHeld(now time.Duration) {
	c.now = max(c.now, now)
	c.endPanicked()
	if !c.closer.inPacket {
		c.flushOrderCache(math.MaxInt64)
	}
}

// peerGone ends the connection of a peer that has left.
func (c *Conn) peerGone(reason string) {
	if c.closer.closing {
		c.end(ClosedByUs, nil) // the peer has seen our close; only its ack is missing
		return
	}
	if c.closer.peerReason == "" {
		c.closer.peerReason = reason
	}
	c.end(ClosedByPeer, nil)
}

// PeerReason stores the peer's reason for closing, for the result. The control channel's handler calls it.
func (c *Conn) PeerReason(reason string) { c.closer.peerReason = reason }

// Fail ends the connection for a broken rule; see channel.Conn.
func (c *Conn) Fail(err error, local bool) {
	if c.Closed() {
		return
	}
	c.lastWords()
	if local {
		c.end(WeBroke, err)
	} else {
		c.end(PeerBroke, err)
	}
}

// lastWords sends a close of channel 0 in a last packet, whatever is in flight, and repeats that packet because it won't be
// acked.
func (c *Conn) lastWords() {
	if !c.closesControl() {
		return
	}
	c.closer.lastWords = true
	_ = c.channels.CloseControl() // with a full buffer the peer times out
	c.FlushNet()
	for range lastCopies {
		sent := c.Counters.PacketsSent
		c.channels.HurryControl()
		c.FlushNet()
		if c.Counters.PacketsSent != sent+1 {
			break // more than one packet, or no room for any
		}
	}
}

// lastAcks repeats the ack of the peer's close, because most links accept nothing more of a connection that has ended.
func (c *Conn) lastAcks() {
	for i := 0; c.channels.PeerClosed() && !c.packetsFull(0) && i < lastCopies; i++ {
		if c.maySendAgain() {
			c.sendAgain()
			continue
		}
		c.sendAckPacket()
	}
}

// lastCopies is how often the last packet is repeated.
const lastCopies = 4

// CloseInOrder closes the connection: the game has closed channel 0. See channel.Outlet.
func (o *outlet) CloseInOrder() {
	c := o.conn()
	c.Close(c.now, "")
}

// ControlClosed ends the connection: channel 0 is gone. See channel.Outlet.
func (o *outlet) ControlClosed(channel.CloseReason) {
	c := o.conn()
	c.closer.controlGone = true
	if c.closer.inPacket {
		c.closer.goneWith = max(c.notify.InID(), c.closer.early)
	} else {
		c.endControl()
	}
}

// endControl ends the connection because channel 0 is gone. Within a packet it waits until the packet is acked, so that
// the peer learns of it.
func (c *Conn) endControl() {
	if !c.isControlGone() {
		return
	}
	if c.closer.closing {
		c.end(ClosedByUs, nil)
	} else {
		c.end(ClosedByPeer, nil)
	}
}

// isControlGone reports whether channel 0 was closed, by a packet whose turn has come.
func (c *Conn) isControlGone() bool {
	return c.closer.controlGone && c.notify.InID() >= c.closer.goneWith
}

func (c *Conn) end(code CloseCode, err error) {
	if c.Closed() {
		return
	}
	reason, theirs := c.closer.reason, c.closer.peerReason
	switch code {
	case ClosedByUs:
	case ClosedByPeer:
		reason, theirs = theirs, ""
	default:
		theirs = ""
	}
	if c.closer.controlGone {
		c.oweAcks(0) // the peer waits for the ack of its close
	}
	c.FlushWritten(c.now)
	c.lastAcks()
	c.closer.endedAt = c.now
	c.closer.result = CloseResult{Code: code, Reason: reason, PeerReason: theirs, Err: err, Undelivered: c.channels.Undelivered(), Silence: c.now - c.flow.lastReceive}
	for _, u := range c.closer.result.Undelivered {
		c.closer.result.Unacked += u.Bunches
	}
	c.trace(nettrace.ConnClosed, 0, uint64(code), uint64(c.closer.result.Unacked))
	if c.cfg.Closed != nil {
		defer func() { c.cfg.Closed(c.closer.result) }() // though a handler panics
	}
	c.channels.End()
}

var errPanicked = errors.New("netconn: a handler panicked, so that the rest of its packet was lost")

// endPanicked ends a connection of which a handler has panicked within a packet, when the game has recovered. What the packet had is lost, and
// what was acked before its turn with it.
func (c *Conn) endPanicked() {
	if c.closer.panicked {
		c.Fail(errPanicked, true)
	}
}

// answerLate acks packets that arrive after the end: the peer waits for the ack of its close, which was lost. It acks
// only packets with nothing else new to us, or the peer would believe that the rest was delivered. It answers an empty
// packet only now and then: it may be one of many keep-alives sent while the ack is in flight.
func (c *Conn) answerLate(p []byte) {
	cl := &c.closer
	if !cl.controlGone || c.now-cl.endedAt > c.cfg.LingerTimeout {
		return
	}
	if c.coder != nil && coding.Marked(p) {
		p, _, _ = coding.Split(p)
	}
	var r bitio.Reader
	var h packetnotify.Header
	if c.unwrap(&r, p) != nil || h.Read(&r) != nil {
		return
	}
	delta, process := c.notify.Update(&h, nobody{})
	if !process {
		if c.notify.WaitingForFlush() {
			c.answerEmpty()
		}
		return
	}
	bytes := uint64(r.Remaining()+7) / 8
	c.readPacketInfo(&r)
	empty, had := r.Remaining() == 0, r.Err() == nil
	for had && r.Remaining() > 0 {
		had = c.proto.Read(&r, &c.in.Header, &c.in.Data) == nil && c.in.Reliable && c.channels.Had(&c.in.Header)
	}
	c.notify.AckSeq(had)
	if had {
		c.trace(nettrace.PacketReceived, c.notify.InID(), bytes, uint64(delta))
	}
	switch {
	case had && empty:
		c.answerEmpty()
	case had && cl.answers < maxAnswers:
		cl.answers++
		c.answer()
	}
}

// answerEmpty answers an empty packet, or one that is refused until the peer has heard acks of ours.
func (c *Conn) answerEmpty() {
	if c.now >= c.closer.emptyAt {
		c.answer()
	}
}

func (c *Conn) answer() {
	c.closer.emptyAt = c.now + min(max(c.now-c.closer.endedAt, answerGap), c.cfg.LingerTimeout/maxAnswers)
	c.startPacket()
	c.sendPacket(0, false)
}

// maxAnswers bounds the answers to packets with bunches, and those to empty ones in the later part of LingerTimeout: the other end may have ended too and
// answer the answers. At first an empty one waits as long as has passed since the end, so that a long LingerTimeout doesn't make a short darkness long.
const (
	maxAnswers = 16
	answerGap  = 100 * time.Millisecond
)

// nobody handles the fates of packets after the end: by doing nothing.
type nobody struct{}

func (nobody) PacketAcked(int64) {}
func (nobody) PacketLost(int64)  {}
