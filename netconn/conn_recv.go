package netconn

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// Errors of ReceivedPacket for packets that are dropped; the connection goes on.
var (
	// ErrClosed: the connection has ended.
	ErrClosed = errors.New("netconn: connection closed")
	// ErrPacket: not a packet of this connection: its end mark, its prefix or its header is broken.
	ErrPacket = errors.New("netconn: malformed packet")
)

// ReceivedPacket takes a packet from the peer. p isn't kept. An error says why the
// packet was dropped, for counters and logs; a broken rule inside an authentic packet
// ends the connection, see Result.
func (c *Conn) ReceivedPacket(now time.Duration, p []byte) error {
	c.now = max(c.now, now)
	if c.Closed() {
		c.Counters.AfterClose++
		c.answerLate(p)
		return ErrClosed
	}
	if len(p) > (c.proto.PacketBits()+c.proto.HandlerBits+7)/8 {
		c.Counters.BadHeader++
		return fmt.Errorf("%w: %d bytes, more than MaxPacket", ErrPacket, len(p))
	}
	c.tracePacket(false, p)
	var r bitio.Reader // handed on by its address: its parts were written too late to be copied at once
	if err := c.unwrap(&r, p); err != nil {
		c.Counters.BadHandler++
		return err
	}
	var h packetnotify.Header
	if err := h.Read(&r); err != nil {
		c.Counters.BadHeader++
		return fmt.Errorf("%w: %w", ErrPacket, err)
	}
	c.Counters.PacketsReceived++
	c.Counters.BytesReceived += uint64(len(p))
	c.receiveInOrder(&r, &h)
	return nil
}

// unwrap takes off what ends a packet: the handlers' wrapping, then the connection's end mark.
func (c *Conn) unwrap(r *bitio.Reader, p []byte) error {
	if c.cfg.Handlers == nil {
		return handler.Open(r, p)
	}
	if err := c.cfg.Handlers.Incoming(r, p); err != nil {
		return err
	}
	r.StripTerminator()
	return r.Err()
}

// PostTickDispatch ends a receive tick: packets that were held back for a late
// one are processed, unless the reorder window still waits for it.
func (c *Conn) PostTickDispatch(now time.Duration) {
	c.now = max(c.now, now)
	c.flushOverdue()
}

// processPacket takes a packet whose turn it is: first the acks it carries, then its bunches.
func (c *Conn) processPacket(r *bitio.Reader, h *packetnotify.Header) {
	if c.Closed() {
		return
	}
	c.closer.inPacket = true
	defer c.afterPacket()
	fresh := c.notify.Delta(h) > 0
	delta, process := c.notify.Update(h, (*fates)(c))
	if c.skip.acked {
		c.Fail(errOptimistic, false)
	}
	if c.Closed() { // a handler that heard of an ack ended it
		return
	}
	if delta == 0 {
		if fresh {
			c.flow.lastReceive = c.now // it is heard, though not processed
		}
		if c.notify.WaitingForFlush() {
			c.oweAcks(0) // until the peer has heard them
		}
		c.Counters.Stale++
		c.trace(nettrace.PacketRefused, c.notify.InID(), uint64(h.Seq), 0)
		return
	}
	c.flow.lastReceive = c.now
	for missing := max(1, delta-maxGaps); missing < delta; missing++ {
		c.order.late.gap(c.notify.InID()-missing, c.now)
	}
	c.Counters.PacketsMissed += uint64(delta - 1)
	if !process {
		c.Counters.NotProcessed++
		c.oweAcks(0)
		return
	}
	id := c.notify.InID()
	c.trace(nettrace.PacketReceived, id, uint64(r.Remaining()+7)/8, uint64(delta))
	if clock, ok := c.readPacketInfo(r); ok {
		c.rtt.clock(c.now, clock)
	}
	c.flow.lossNews = c.flow.lossNews || delta > 1
	carries := r.Remaining() > 0
	closed := c.channels.Counters.ChannelsClosed
	nak, err := c.readBunches(r, id)
	if c.channels.Counters.ChannelsClosed != closed && c.out.Len() > 0 {
		c.FlushNet() // before the ack, since the peer's channels are gone when it hears that
	}
	if c.Closed() {
		return
	}
	c.notify.AckSeq(!nak)
	switch { // only now, as a packet that handlers sent meanwhile doesn't have the ack
	case delta > 1:
		c.oweAcks(0) // the peer hears of its loss at once
	case carries:
		c.oweAcks(c.cfg.AckDelay)
	}
	c.flow.unheard += int(min(delta, acksAtOnce))
	if nak {
		c.Counters.Refused++
	}
	if err != nil {
		c.Counters.BadBunch++
		c.Fail(err, false)
		return
	}
	c.channels.Pump()
	if c.closer.closing {
		c.closeWhenDrained()
	}
	switch {
	case c.Closed():
	case c.flow.unheard >= acksAtOnce: // the history holds 256
		c.oweAcks(0)
		c.FlushNet()
	case c.flow.unheard >= acksSoon && c.flow.dirtyAcks:
		c.oweAcks(0)
	}
}

// Acks wait for AckDelay at most until so many packets are owed one: then they are due in this tick, and, before the
// oldest of them fall out of the history, at once.
const (
	acksSoon   = 16
	acksAtOnce = 192
)

func (c *Conn) afterPacket() {
	c.closer.inPacket, c.closer.early = false, 0
	c.endControl()
}

// readBunches hands the packet's bunches to the channels.
func (c *Conn) readBunches(r *bitio.Reader, id int64) (nak bool, err error) {
	if r.Err() != nil {
		return false, fmt.Errorf("%w: %w", ErrPacket, r.Err())
	}
	for r.Remaining() > 0 && !c.isControlGone() { // nothing behind the connection's end counts
		in := &c.in
		if err = c.proto.Read(r, &in.Header, &in.Data); err != nil {
			return nak, err
		}
		in.PacketID = id
		c.traceBunch(nettrace.BunchReceived, id, &in.Header)
		refused, err := c.channels.ReceivedBunch(in)
		nak = nak || refused
		if err != nil || c.Closed() {
			return nak, err
		}
	}
	return nak, nil
}
