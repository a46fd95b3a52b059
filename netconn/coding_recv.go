package netconn

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// How packets are repaired, and how long those behind a missing one wait for that.

const (
	longestHold  = 50 * time.Millisecond
	holdMargin   = 4 * time.Millisecond
	symbolsStale = 250 * time.Millisecond
)

// receivedCoded is ReceivedPacket for a connection with coding.
func (c *Conn) receivedCoded(p []byte) error {
	k := c.coder
	plain, t := p, coding.Trailer{}
	if coding.Marked(p) {
		if heard, ok := coding.Hello(p); ok {
			k.receivedHello(heard)
			return nil
		}
		ok := false
		if plain, t, ok = coding.Split(p); !ok {
			c.Counters.BadHandler++
			return fmt.Errorf("%w: its trailer is broken", ErrPacket)
		}
	}
	var r bitio.Reader
	var h packetnotify.Header
	if err := c.readHeader(&r, &h, plain); err != nil {
		return err
	}
	id := c.notify.ID(&h)
	if c.notify.Delta(&h) > 0 {
		k.peer = k.peer || coding.Marked(p)
		c.toldRepaired(&h, &t)
	}
	k.tell.came(id)
	if c.notify.Delta(&h) > 0 || c.notify.Late(&h) {
		c.takeSymbols(id, plain, &t)
	}
	c.takeRepaired(id)
	c.countReceived(len(p))
	c.receiveInOrder(&r, &h)
	if k.dec != nil {
		c.takeRepaired(id + codingReach)
		c.flushHopeless()
	}
	return nil
}

// codingReach is beyond all packets that a decoder keeps.
const codingReach = 1 << 20

// takeSymbols gives a packet and its symbols to the decoder.
func (c *Conn) takeSymbols(id int64, plain []byte, t *coding.Trailer) {
	k := c.coder
	if t.Covers > 0 && k.dec == nil {
		k.dec = new(coding.Decoder)
	}
	if k.dec == nil {
		return
	}
	for i := 0; i*t.Size < len(t.Symbols); i++ {
		_ = k.dec.Symbol(id, i, t.Covers, t.Symbols[i*t.Size:(i+1)*t.Size]) // Split allows none that it refuses
	}
	k.dec.Add(id, plain[headerBytes(plain):])
	if t.Covers > 0 && c.now > k.lastSymbol {
		if d := c.now - k.lastSymbol; d < symbolsStale {
			k.gap += (d - k.gap) / 8
		}
		k.lastSymbol = c.now
	}
}

// takeRepaired processes the packets that were found and are before one, oldest first.
func (c *Conn) takeRepaired(before int64) {
	k := c.coder
	for k.dec != nil && !c.Closed() {
		id, content, ok := k.dec.Next(before)
		if !ok {
			return
		}
		c.Counters.Repaired++
		var r bitio.Reader
		r.Reset(content, 8*len(content))
		r.StripTerminator()
		if id <= c.notify.InID() {
			c.Counters.RepairedLate++
			c.takeEarly(r, id, true)
			continue
		}
		k.tell.repair(id)
		h := packetnotify.Header{Seq: seqnum.Packet.Truncate(id), AckedSeq: seqnum.Packet.Truncate(c.notify.OutAckID())}
		c.receiveInOrder(&r, &h)
	}
}

// isRepaired reports whether h is of a packet that was repaired: its header, and the acks in it, are lost.
func isRepaired(h *packetnotify.Header) bool { return h.Words == 0 }

// holds is how long packets wait for a missing one that may be repaired.
func (k *coder) holds(now time.Duration) time.Duration {
	if k == nil || k.dec == nil || now-k.lastSymbol > symbolsStale {
		return 0
	}
	return min(k.gap+holdMargin, longestHold)
}

// flushHopeless processes packets that wait only for ones that won't be repaired soon: the sooner the peer hears of those, as of a burst, the sooner it sends them again.
func (c *Conn) flushHopeless() {
	for c.order.held > 0 && c.ordinaryWindow() == 0 && !c.Closed() {
		next := c.nextHeld()
		for id := c.notify.InID() + 1; id < next.id; id++ {
			if c.coder.dec.MayCome(id) {
				return
			}
		}
		c.flushOrderCache(next.id)
	}
}
