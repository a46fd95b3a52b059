package netconn

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// Errors of ReceivedPacket for dropped packets. The connection continues.
var (
	// ErrClosed: the connection has ended.
	ErrClosed = errors.New("netconn: connection closed")
	// ErrPacket: the bytes aren't a packet of this connection: the end mark, the prefix or the header is wrong.
	ErrPacket = errors.New("netconn: malformed packet")
)

// ReceivedPacket handles a packet from the peer. It doesn't keep p. An error says why the packet was dropped, for
// counters and logs. A broken rule inside an authentic packet ends the connection; see Result.
func (c *Conn) ReceivedPacket(now time.Duration, p []byte) error {
	c.now = max(c.now, now)
	c.endPanicked()
	if c.Closed() {
		c.Counters.AfterClose++
		c.answerLate(p)
		return ErrClosed
	}
	if len(p) > c.mostReceived() {
		c.Counters.BadHeader++
		return fmt.Errorf("%w: %d bytes, more than any packet of the peer's", ErrPacket, len(p))
	}
	c.tracePacket(false, p)
	if c.now > c.flow.readAt {
		c.flow.atOnce = c.now-c.flow.readAt > slowTicks && c.now-c.order.ticks.at > slowTicks
		c.flow.readAt = c.now
		if c.flow.atOnce {
			c.channels.Pump() // what waited before
			c.flow.queued = c.channels.Queued()
		}
	}
	if c.coder != nil {
		return c.receivedCoded(p)
	}
	var r bitio.Reader // passed by pointer: avoids a store-forwarding stall
	var h packetnotify.Header
	if err := c.readHeader(&r, &h, p); err != nil {
		return err
	}
	c.countReceived(len(p))
	c.receiveInOrder(&r, &h)
	return nil
}

// readHeader removes the end of a packet and reads its header.
func (c *Conn) readHeader(r *bitio.Reader, h *packetnotify.Header, p []byte) error {
	if err := c.unwrap(r, p); err != nil {
		c.Counters.BadHandler++
		return fmt.Errorf("%w: %w", ErrPacket, err)
	}
	if err := h.Read(r); err != nil {
		c.Counters.BadHeader++
		return fmt.Errorf("%w: %w", ErrPacket, err)
	}
	return nil
}

func (c *Conn) countReceived(bytes int) {
	c.Counters.PacketsReceived++
	c.Counters.BytesReceived += uint64(bytes)
}

// unwrap removes the end of a packet: the handlers' wrapping, then the connection's end mark.
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

// PostTickDispatch ends a receive tick. It processes packets held back for a late one, unless the reorder window still
// waits.
func (c *Conn) PostTickDispatch(now time.Duration) {
	c.now = max(c.now, now)
	c.endPanicked()
	c.order.ticks.end(c.now)
	c.flushOverdue()
	if c.flow.atOnce {
		c.flow.atOnce = false
		c.pump()
	}
	c.order.ticks.kept = c.order.held > 0
}

// processPacket handles a packet in its turn.
func (c *Conn) processPacket(r *bitio.Reader, h *packetnotify.Header) {
	if c.Closed() {
		return
	}
	c.closer.inPacket, c.closer.whole = true, false
	defer c.afterPacket()
	c.takePacket(r, h)
	c.closer.whole = true
}

// pump sends what waits and may be sent. What is queued behind that is spent.
func (c *Conn) pump() {
	c.channels.Pump()
	c.noteQueued()
}

func (c *Conn) noteQueued() {
	if !c.flow.atOnce {
		c.flow.queued = c.channels.Queued()
	}
}

// takePacket takes first the packet's acks, then its bunches.
func (c *Conn) takePacket(r *bitio.Reader, h *packetnotify.Header) {
	if isRepaired(h) {
		h.AckedSeq = seqnum.Packet.Truncate(c.notify.OutAckID())
	}
	if c.coder != nil {
		c.coder.heard = c.notify.ID(h)
	}
	ahead := c.notify.Delta(h)
	fresh := ahead > 0
	c.flow.unanswered = c.flow.unanswered || fresh
	heard := fresh || c.notify.Again(h)
	if heard {
		c.flow.lastReceive = c.now // whether it is processed or not
	}
	c.flow.ackedAt = 0
	if id := c.notify.AckedID(h); ahead > 1 && id >= c.first && id < c.sentPackets.next {
		c.flow.ackedAt = c.packetAt(id).at
	}
	if c.returner != nil && heard && !isRepaired(h) {
		peek := *r
		if clock, ok := c.readPacketInfo(&peek); ok {
			wait := c.wayBack.heard(c.now, clock)
			c.returner.OnReturn(wait)
		}
	}
	delta, process := c.notify.Update(h, (*fates)(c))
	if c.skip.acked {
		c.Fail(errOptimistic, false)
	}
	if c.Closed() { // a handler that was told of an ack ended it
		return
	}
	if heard && c.acksLost() {
		c.oweAcks(0)
	}
	if fresh && !process {
		if err := c.takeControl(r, c.notify.ID(h)); err != nil {
			c.Counters.BadBunch++
			c.Fail(err, false)
			return
		}
	}
	if delta == 0 {
		if c.notify.WaitingForFlush() {
			c.oweAcks(0) // until the peer has heard them
		}
		c.Counters.Stale++
		c.trace(nettrace.PacketRefused, c.notify.InID(), uint64(h.Seq), 0)
		return
	}
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
	if clock, ok := c.readPacketInfo(r); ok && !isRepaired(h) {
		c.rtt.clock(c.now, clock)
	}
	c.flow.lossNews = c.flow.lossNews || delta > 1
	carries := r.Remaining() > 0
	closed := c.channels.Counters.ChannelsClosed
	nak, err := c.readBunches(r, id)
	if c.channels.Counters.ChannelsClosed != closed && c.out.Len() > 0 {
		c.FlushNet() // before the ack, because the peer's channels are gone after that
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
	c.pump()
	if c.closer.closing {
		c.lookWhetherDrained()
	}
	switch {
	case c.Closed():
	case c.flow.unheard >= acksAtOnce: // the history holds 256
		c.oweAcks(0)
		c.FlushNet()
	case c.flow.dirtyAcks && c.flow.unheard >= min(acksSoon, c.cfg.Protocol.PacketWindow/2):
		c.oweAcks(0)
	}
}

// takeControl takes the reliable bunches of channel 0 from a packet that is refused. They have an order of their own, and are dropped as
// duplicates when they come again. The last words of a peer that has ended don't come again.
func (c *Conn) takeControl(r *bitio.Reader, id int64) error {
	c.readPacketInfo(r)
	for r.Remaining() > 0 && !c.Closed() && !c.isControlGone() {
		in := &c.in
		if err := c.proto.Read(r, &in.Header, &in.Data); err != nil {
			return err
		}
		if !in.Reliable || in.ChIndex != 0 {
			continue
		}
		in.PacketID = id
		if refused, err := c.channels.ReceivedBunch(in); refused || err != nil {
			return err
		}
	}
	return nil
}

// Acks wait for AckDelay at most until acksSoon packets are owed one, or half of the window, which is the peer's too: then they are due in this tick. Before the
// oldest of them fall out of the history they are due at once.
const (
	acksSoon   = 16
	acksAtOnce = 192
)

func (c *Conn) afterPacket() {
	c.closer.inPacket, c.closer.early = false, 0
	if c.closer.panicked = !c.closer.whole; c.closer.panicked {
		return
	}
	c.endControl()
}

// readBunches passes the packet's bunches to the channels.
func (c *Conn) readBunches(r *bitio.Reader, id int64) (nak bool, err error) {
	if r.Err() != nil {
		return false, fmt.Errorf("%w: %w", ErrPacket, r.Err())
	}
	c.channels.ReceivedPacket(id)
	for r.Remaining() > 0 && !c.isControlGone() { // bunches after the connection's close don't count
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
