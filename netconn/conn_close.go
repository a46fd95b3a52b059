package netconn

import (
	"fmt"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// CloseCode says what ended a connection.
type CloseCode uint8

// What may end a connection.
const (
	Running      CloseCode = iota // it hasn't ended
	ClosedByUs                    // Close was called
	ClosedByPeer                  // the peer closed channel 0, or its link
	TimedOut                      // nothing was received for Timeout
	PeerBroke                     // the peer broke a rule of the protocol; see Err
	WeBroke                       // a bound of ours was exceeded with CloseOnOverflow; see Err
	PathNarrow                    // the path loses all packets above some size, and reliable bunches with them; see Err
)

// String is the code in words.
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
		return "closed by an overflow of ours"
	case PathNarrow:
		return "the path loses large packets"
	}
	return fmt.Sprintf("CloseCode(%d)", uint8(c))
}

// CloseResult says why a connection ended, whose doing it was, and what was lost.
type CloseResult struct {
	Code CloseCode
	// Reason is what Close was given, or what the peer sent, in words.
	Reason string
	// Err is the broken rule, for PeerBroke and WeBroke, or what was measured, for TimedOut and PathNarrow.
	Err error
	// Unacked is the number of reliable bunches that the peer may not have got, Undelivered says on which
	// channels.
	Unacked     int
	Undelivered []channel.Undelivered
	// Silence is how long nothing had been received.
	Silence time.Duration
}

// String is the result as a sentence.
func (r CloseResult) String() string {
	s := r.Code.String()
	if r.Reason != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), r.Reason)) {
		s += ": " + r.Reason
	}
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	if r.Unacked > 0 {
		s += fmt.Sprintf(" (%d reliable bunches unacked)", r.Unacked)
	}
	return s
}

type closer struct {
	result     CloseResult
	closing    bool
	reason     string
	deadline   time.Duration
	peerReason string
	endedAt    time.Duration
	answers    int           // to bunches that came after that
	emptyAt    time.Duration // from when on an empty packet has an answer again

	inPacket    bool  // a packet is being processed
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

// Close ends the connection in order: nothing more can be sent, what was sent before on any channel is
// delivered, the peer is told, and the connection ends when it has acked that, or after LingerTimeout. What
// still arrives meanwhile is delivered. Tick must go on until Closed; the result lists what wasn't acked. The reason is for
// our own records; to tell the peer, send it on the control channel first. CloseWithReason of a driver's Conn does both.
func (c *Conn) Close(now time.Duration, reason string) {
	c.now = max(c.now, now)
	if c.Closed() || c.closer.closing {
		return
	}
	c.closer.closing, c.closer.reason, c.closer.deadline = true, reason, c.now+c.cfg.LingerTimeout
	c.channels.Shut()
	c.closeWhenDrained()
}

// closeWhenDrained closes channel 0 once everything else is acked.
func (c *Conn) closeWhenDrained() {
	if c.Closed() || c.closer.controlGone || c.Table().Unacked() > 0 {
		return
	}
	if !c.closesControl() || c.channels.CloseControl() != nil {
		c.FlushNet() // unreliable bunches may be in it
		c.end(ClosedByUs, nil)
	}
}

// closesControl reports whether there is a channel 0 to close, or one can be opened for it.
func (c *Conn) closesControl() bool { return c.Channel(0) != nil || !c.cfg.Protocol.Unreal }

// Abort ends the connection at once, after one last packet with a close of channel 0.
func (c *Conn) Abort(now time.Duration, reason string) {
	c.now = max(c.now, now)
	if c.Closed() {
		return
	}
	c.closer.reason = reason
	c.lastWords()
	c.end(ClosedByUs, nil)
}

// LinkClosed tells that the layer below says the peer is gone.
func (c *Conn) LinkClosed(now time.Duration, reason string) {
	c.now = max(c.now, now)
	if c.closer.closing {
		c.end(ClosedByUs, nil) // the peer only left before we heard that it knows
		return
	}
	if c.closer.peerReason == "" {
		c.closer.peerReason = reason
	}
	c.end(ClosedByPeer, nil)
}

// PeerReason keeps what the peer said of why it closes, for the result; the
// control channel's handler calls it.
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

// lastWords sends a close of channel 0 in a last packet, as far as there is room, and that packet again: nobody will
// hear if it is lost.
func (c *Conn) lastWords() {
	if !c.closesControl() {
		return
	}
	_ = c.channels.CloseControl() // with a full buffer or window the peer times out
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

// lastAcks sends the ack of the peer's close again, since most links hear nothing more of a connection that has ended.
func (c *Conn) lastAcks() {
	for i := 0; c.closer.controlGone && !c.closer.closing && !c.windowFull() && i < lastCopies; i++ {
		if c.maySendAgain() {
			c.sendAgain()
			continue
		}
		c.sendAckPacket()
	}
}

// lastCopies is how often the last packet leaves again.
const lastCopies = 4

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

// endControl ends the connection because channel 0 is gone; within a packet only after that
// is acked, so that the peer learns of it.
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

// isControlGone reports whether channel 0 is closed and the packet that did it has had its turn.
func (c *Conn) isControlGone() bool {
	return c.closer.controlGone && c.notify.InID() >= c.closer.goneWith
}

func (c *Conn) end(code CloseCode, err error) {
	if c.Closed() {
		return
	}
	reason := c.closer.reason
	if code == ClosedByPeer {
		reason = c.closer.peerReason
	}
	if c.closer.controlGone {
		c.oweAcks(0) // the peer waits for the ack of its close
	}
	c.FlushWritten(c.now)
	c.lastAcks()
	c.closer.endedAt = c.now
	c.closer.result = CloseResult{Code: code, Reason: reason, Err: err, Undelivered: c.channels.Undelivered(), Silence: c.now - c.flow.lastReceive}
	for _, u := range c.closer.result.Undelivered {
		c.closer.result.Unacked += u.Bunches
	}
	c.trace(nettrace.ConnClosed, 0, uint64(code), uint64(c.closer.result.Unacked))
	c.channels.End()
	if c.cfg.Closed != nil {
		c.cfg.Closed(c.closer.result)
	}
}

// answerLate acks what comes after the end, since the peer waits for that: our ack of its close was lost. Nothing else in the packet may be
// new to us, or the peer would believe that it was delivered. An empty packet only has an answer now and then: it may be one of many that
// keep alive while the ack is under way.
func (c *Conn) answerLate(p []byte) {
	cl := &c.closer
	if !cl.controlGone || c.now-cl.endedAt > c.cfg.LingerTimeout {
		return
	}
	var r bitio.Reader
	var h packetnotify.Header
	if c.unwrap(&r, p) != nil || h.Read(&r) != nil {
		return
	}
	if _, process := c.notify.Update(&h, nobody{}); !process {
		return
	}
	c.readPacketInfo(&r)
	empty, had := r.Remaining() == 0, r.Err() == nil
	for had && r.Remaining() > 0 {
		had = c.proto.Read(&r, &c.in.Header, &c.in.Data) == nil && c.in.Reliable && c.channels.Had(&c.in.Header)
	}
	c.notify.AckSeq(had)
	if !had || empty && c.now < cl.emptyAt || !empty && cl.answers == maxAnswers {
		return
	}
	if cl.emptyAt = c.now + c.cfg.LingerTimeout/maxAnswers; !empty {
		cl.answers++
	}
	c.startPacket()
	c.sendPacket(0, false)
}

// maxAnswers bounds those to packets with bunches, and to empty ones: the other end may have ended, too, and answer the answers.
const maxAnswers = 16

// nobody is told what became of packets after the end.
type nobody struct{}

func (nobody) PacketAcked(int64) {}
func (nobody) PacketLost(int64)  {}
