package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/netconn/handler/coding"
)

// Whether the peer understands coding: both ends say so until they have heard it of each other.

// hello tells the peer that this end understands coding.
type hello struct {
	buf     []byte
	sent    int
	at      time.Duration // of the next one
	last    time.Duration // when the last one was sent
	owed    bool          // the peer asked
	answers int
}

// Hellos go out until the peer's has come, further and further apart. One that nothing came after isn't followed by another: in darkness they would all be lost.
const (
	maxHellos   = 8
	maxAnswered = 16
	firstHello  = 100 * time.Millisecond
)

// helloAt is when a hello is due.
func (c *Conn) helloAt() (time.Duration, bool) {
	h := &c.coder.hello
	if h.owed {
		return 0, true
	}
	return h.at, !c.coder.peer && h.sent < maxHellos && (h.sent == 0 || c.flow.lastReceive > h.last)
}

// sendHello tells the peer of coding when that is due.
func (c *Conn) sendHello() {
	k := c.coder
	h := &k.hello
	if at, ok := c.helloAt(); !ok || c.now < at {
		return
	}
	if !k.peer {
		h.at, h.last = c.now+firstHello<<h.sent, c.now
		h.sent++
	}
	h.owed = false
	p := coding.AppendHello(h.buf[:c.cfg.Headroom], k.peer)
	c.Counters.BytesSent += coding.HelloBytes
	c.tracePacket(true, p[c.cfg.Headroom:])
	c.cfg.LowLevelSend(p)
}

// receivedHello notes that the peer understands coding, and answers if it asks.
func (k *coder) receivedHello(heard bool) {
	k.peer = true
	if !heard && k.hello.answers < maxAnswered {
		k.hello.answers++
		k.hello.owed = true
	}
}
