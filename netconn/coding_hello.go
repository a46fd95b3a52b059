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
	owed    bool          // the peer asked
	answers int
}

// Hellos go out until the peer's has come, further and further apart.
const (
	maxHellos   = 8
	maxAnswered = 16
	firstHello  = 100 * time.Millisecond
)

// dueAt is when a hello is due.
func (h *hello) dueAt(peer bool) (time.Duration, bool) {
	if h.owed {
		return 0, true
	}
	return h.at, !peer && h.sent < maxHellos
}

// sendHello tells the peer of coding when that is due.
func (c *Conn) sendHello() {
	k := c.coder
	h := &k.hello
	if at, ok := h.dueAt(k.peer); !ok || c.now < at {
		return
	}
	if !k.peer {
		h.at = c.now + firstHello<<h.sent
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
