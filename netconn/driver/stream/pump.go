package stream

import (
	"encoding/binary"
	"errors"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// What a segment may be.
const (
	segData = iota
	segCredit
	segFin
	segStop
	segRefused
)

const (
	dataHeader = 3
	maxData    = 900 // fits a packet of every protocol; less where its packets are set smaller
	maxSegment = dataHeader + maxData
)

// run is what schedule asked for, on the driver's goroutine.
func (c *Conn) run() {
	c.mu.Lock()
	c.scheduled = false
	c.mu.Unlock()
	c.pump()
}

// pump sends what doesn't wait for bandwidth, and has data sent when the game leaves some. While the channel has no room it comes
// back with an ack of its own.
func (c *Conn) pump() {
	for c.sends() {
		seg := c.next()
		switch {
		case seg == nil:
			c.endChannel()
			return
		case seg[0] == segData:
			if c.offer(true) {
				c.conn.SendSpare(c.sendFn)
			}
			return
		case !c.send(seg):
			return
		}
	}
}

// sendData sends a segment of data and returns its bytes, as driver.Conn.SendSpare wants it.
func (c *Conn) sendData() int {
	if c.sends() {
		seg := c.next()
		switch {
		case seg == nil || seg[0] != segData:
			c.offer(false)
			c.pump() // which finds what was written until now; later writes schedule it
			return 0
		case c.send(seg):
			return len(seg)
		}
	}
	c.offer(false)
	return 0
}

// offer notes whether sendData is among the connection's senders, and reports whether that is new.
func (c *Conn) offer(yes bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.offered != yes
	c.offered = yes
	return changed
}

// sends reports whether segments may be sent. At the orderly end of the connection only Finish may.
func (c *Conn) sends() bool { return c.ch != nil && !c.ch.Closing() && !c.parting }

// Finish sends what was written when the connection closes in order; see channel.Finisher. It doesn't wait for spare
// bandwidth, since the game sends nothing more. The peer's credit and the channel's room bound it.
func (c *Conn) Finish(*channel.Channel) bool {
	c.part()
	for c.ch != nil {
		seg := c.next()
		if seg == nil || !c.send(seg) {
			break
		}
	}
	return c.finished()
}

// Answer gives a peer that closes the connection as well credit for what it has left; see channel.Answerer.
func (c *Conn) Answer(ch *channel.Channel) { c.Finish(ch) }

// part ends writing.
func (c *Conn) part() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.parting {
		c.parting = true
		c.wake.Broadcast()
	}
}

// finished reports whether the peer was sent all that it waits for.
func (c *Conn) finished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended || (c.out.n == 0 || c.peerStopped) && (!c.fin || c.finSent)
}

// send reports whether a segment was sent.
func (c *Conn) send(seg []byte) bool {
	if c.ch.Room() == 0 {
		return false // with CloseOnOverflow the connection would end
	}
	_, err := c.ch.SendBunch(&bunch.Out{Data: seg, Reliable: true})
	switch {
	case err == nil:
		c.did(seg)
		return true
	case errors.Is(err, channel.ErrReliableFull): // MaxMemory is full of what other channels have sent: their acks make room
		c.again()
	case errors.Is(err, channel.ErrClosed): // the connection closes in order, and the peer opened this meanwhile: what it sends still comes
		c.part()
	default:
		c.end()
	}
	return false
}

// again has pump called before the next TickFlush, once.
func (c *Conn) again() {
	if !c.waiting {
		c.waiting = true
		c.driver.BeforeFlush(c.tickFn)
	}
}

func (c *Conn) tick() {
	c.waiting = false
	c.pump()
}

// next is the next segment to send, or nil. Nothing changes until did.
func (c *Conn) next() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.creditDue && (!c.closed || c.granted == InitialCredit):
		c.seg[0] = segCredit
		binary.LittleEndian.PutUint64(c.seg[1:], c.taken+uint64(c.cfg.Window))
		return c.seg[:9]
	case c.stop && !c.stopSent:
		c.seg[0] = segStop
		return c.seg[:1]
	case c.out.n > 0 && c.sent < c.credit && !c.peerStopped:
		most := min(maxData, c.ch.Conn().Table().SingleBits()/8-dataHeader, int(min(maxData, c.credit-c.sent)))
		n := c.out.peek(c.seg[dataHeader : dataHeader+most])
		c.seg[0] = segData
		binary.LittleEndian.PutUint16(c.seg[1:], uint16(n))
		return c.seg[:dataHeader+n]
	case c.fin && !c.finSent && (c.out.n == 0 || c.peerStopped):
		c.seg[0] = segFin
		return c.seg[:1]
	}
	return nil
}

// did notes that a segment of next was sent.
func (c *Conn) did(seg []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch seg[0] {
	case segCredit:
		c.granted, c.creditDue = binary.LittleEndian.Uint64(seg[1:]), false
	case segStop:
		c.stopSent = true
	case segFin:
		c.finSent = true
		c.out.release()
	case segData:
		n := len(seg) - dataHeader
		c.out.drop(n)
		c.sent += uint64(n)
		c.wake.Broadcast()
	}
}

// endChannel closes the channel when both ends have said all, if it is ours to close.
func (c *Conn) endChannel() {
	c.mu.Lock()
	done := c.finSent && c.peerFin
	c.mu.Unlock()
	if done && c.ch.OpenedLocally() {
		_ = c.ch.Close(bunch.Destroyed) // with the next ack when there is no room now
	}
}

// ReceivedBunch implements channel.Handler.
func (c *Conn) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	if err := c.receive(in); err != nil {
		ch.Conn().Fail(err, false)
		return
	}
	c.pump()
}

// ReceivedAck implements channel.Handler.
func (c *Conn) ReceivedAck(*channel.Channel, int64) { c.pump() }

// ReceivedNak implements channel.Handler.
func (c *Conn) ReceivedNak(*channel.Channel, int64) {}

// Closed implements channel.Handler.
func (c *Conn) Closed(*channel.Channel, channel.CloseReason) { c.end() }

// end is the end of the channel, whatever ended it.
func (c *Conn) end() {
	c.ch = nil
	c.mu.Lock()
	c.ended = true
	c.out.release()
	c.wake.Broadcast()
	c.mu.Unlock()
	if c.listener != nil {
		c.listener.change(c, func(s *slot) { s.gone, s.lost = true, c.conn.Closed() })
	}
}

func (c *Conn) receive(in *bunch.In) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wake.Broadcast()
	if !in.Reliable || in.Bits%8 != 0 {
		return ErrFormat
	}
	for r := &in.Data; r.Remaining() > 0; {
		var err error
		switch kind := r.ReadUint8(); {
		case kind > segRefused || c.peerFin && (kind == segData || kind == segFin):
			err = ErrFormat
		case kind == segData:
			err = c.data(r)
		case kind == segCredit:
			c.credit = max(c.credit, r.ReadUint64())
		case kind == segFin:
			c.peerFin = true
		case kind == segStop:
			c.peerStopped, c.fin = true, true
		case kind == segRefused:
			c.refusal = Refusal(r.ReadUint8())
		}
		if err != nil || r.Err() != nil {
			return errors.Join(err, r.Err())
		}
	}
	return nil
}

func (c *Conn) data(r *bitio.Reader) error {
	n := int(r.ReadUint16())
	if n == 0 || n > r.Remaining()/8 {
		return ErrFormat
	}
	if c.received += uint64(n); c.received > c.granted {
		return ErrCredit
	}
	if c.closed {
		c.taken += uint64(n)
		r.Skip(n * 8)
		return nil
	}
	for n > 0 {
		b := c.in.tail(n)
		r.ReadBytes(b)
		c.in.commit(len(b))
		n -= len(b)
	}
	return nil
}
