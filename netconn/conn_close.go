package netconn

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
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
	// Unacked is the number of reliable bunches that the peer may not have got.
	Unacked int
	// Silence is how long nothing had been received.
	Silence time.Duration
}

// String is the result as a sentence.
func (r CloseResult) String() string {
	s := r.Code.String()
	if r.Reason != "" {
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

	inPacket    bool // a packet is being processed
	controlGone bool // channel 0 is closed
}

// Closed reports whether the connection has ended.
func (c *Conn) Closed() bool { return c.closer.result.Code != Running }

// Result says why the connection ended; its Code is Running until then.
func (c *Conn) Result() CloseResult { return c.closer.result }

// Closing reports whether Close was called.
func (c *Conn) Closing() bool { return c.closer.closing }

// Close ends the connection after the peer acked what was sent before, or after
// LingerTimeout. Tick must go on until Closed. The reason is for our own records;
// to tell the peer, send it on the control channel first.
func (c *Conn) Close(now time.Duration, reason string) {
	c.now = max(c.now, now)
	if c.Closed() || c.closer.closing {
		return
	}
	c.closer.closing, c.closer.reason, c.closer.deadline = true, reason, c.now+c.cfg.LingerTimeout
	if ch := c.table.Channel(0); ch == nil || ch.Close(bunch.Destroyed) != nil {
		c.end(ClosedByUs, nil)
	}
}

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
	c.closer.peerReason = reason
	c.end(ClosedByPeer, nil)
}

// LinkTimedOut tells that the layer below has heard nothing of the peer for as long as it waits.
func (c *Conn) LinkTimedOut(now time.Duration, reason string) {
	c.now = max(c.now, now)
	c.closer.reason = reason
	c.end(TimedOut, errTimeout)
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

// lastWords sends a close of channel 0 in a last packet, as far as there is room.
func (c *Conn) lastWords() {
	if ch := c.table.Channel(0); ch != nil && !ch.Closing() {
		_ = ch.Close(bunch.Destroyed) // a full buffer or window only means that the peer times out
	}
	c.FlushNet()
}

// ControlClosed ends the connection: channel 0 is gone. See channel.Conn.
func (c *Conn) ControlClosed(channel.CloseReason) {
	c.closer.controlGone = true
	if !c.closer.inPacket {
		c.endControl()
	}
}

// endControl ends the connection because channel 0 is gone; within a packet only after that
// is acked, so that the peer learns of it.
func (c *Conn) endControl() {
	if !c.closer.controlGone {
		return
	}
	if c.closer.closing {
		c.end(ClosedByUs, nil)
	} else {
		c.end(ClosedByPeer, nil)
	}
}

func (c *Conn) end(code CloseCode, err error) {
	if c.Closed() {
		return
	}
	reason := c.closer.reason
	if code == ClosedByPeer {
		reason = c.closer.peerReason
	}
	if code != ClosedByUs && c.out.Len() > 0 {
		c.FlushNet() // acks of what the peer sent last
	} else if code == ClosedByPeer {
		c.oweAcks(0)
		c.FlushNet()
	}
	c.closer.result = CloseResult{Code: code, Reason: reason, Err: err, Unacked: c.table.Unacked(), Silence: c.now - c.flow.lastReceive}
	c.trace(nettrace.ConnClosed, 0, uint64(code), uint64(c.closer.result.Unacked))
	c.table.End()
	if c.cfg.Closed != nil {
		c.cfg.Closed(c.closer.result)
	}
}

var errTimeout = errors.New("netconn: nothing received")

// timeoutAt is when the connection ends if nothing more is received.
func (c *Conn) timeoutAt() (time.Duration, bool) {
	if c.closer.closing {
		return c.closer.deadline, true
	}
	if c.cfg.Timeout < 0 {
		return 0, false
	}
	return c.flow.lastReceive + c.cfg.Timeout, true
}

func (c *Conn) checkTimeouts() bool {
	at, ok := c.timeoutAt()
	if !ok || c.now < at {
		return false
	}
	if c.closer.closing {
		c.end(ClosedByUs, nil)
	} else {
		c.end(TimedOut, fmt.Errorf("%w for %v", errTimeout, c.cfg.Timeout))
	}
	return true
}
