package netconn

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// sendBuffer is the packet under construction.
//
// Invariant: out.Len() == 0 means no packet was begun.
type sendBuffer struct {
	buf        []byte // Headroom, packet, Tailroom
	scratch    []byte // a payload being moved
	out        bitio.Writer
	headerPos  int // bit where the packet header begins
	infoPos    int // bit of the jitter clock, 0 none
	contentPos int // bit where the first bunch begins

	split bool // the next packet goes on with an unreliable bunch: its parts must be in packets that follow each other

	lastEnd  int // bit where the last bunch ends; 0: none that may be extended
	lastLen  int // bit of its length field
	lastBits int // its payload bits
}

func (s *sendBuffer) init(cfg *Config) {
	packet := cfg.Protocol.Bunch.PacketBits() + cfg.Protocol.Bunch.HandlerBits
	s.buf = make([]byte, cfg.Headroom+packet/8, cfg.Headroom+packet/8+cfg.Tailroom)
}

// startPacket begins a packet unless one was begun.
func (c *Conn) startPacket() {
	if c.out.Len() > 0 {
		return
	}
	c.startPacketOf(c.packetBytes())
}

// startPacketOf begins a packet of at most so many bytes.
func (c *Conn) startPacketOf(bytes int) {
	c.beginPacket(bytes)
	c.notify.WriteHeader(&c.out)
	c.writePacketInfo()
	c.contentPos = c.out.Len()
}

// beginPacket writes the part before a packet's header.
func (c *Conn) beginPacket(bytes int) {
	room := 8*bytes - 1 // the end mark
	if c.coder != nil {
		room = c.proto.PacketBits() - 1
	}
	if c.cfg.Handlers != nil {
		room-- // and theirs
	}
	c.out.ResetBits(c.buf[c.cfg.Headroom:], room)
	if c.cfg.Handlers != nil {
		c.cfg.Handlers.Begin(&c.out)
	}
	c.headerPos = c.out.Len()
}

// WriteBunch puts a bunch into the SendBuffer; see channel.Outlet. The caller has called HasRoom, and every bunch of a
// channel fits an empty packet.
func (o *outlet) WriteBunch(h *bunch.Header, data []byte, ch *channel.Channel, seq int64) int64 {
	c := o.conn()
	ready, before := c.Budget() > 0, c.out.Len()
	if c.coder != nil && c.endLong(h, ch) {
		before = 0
	}
	c.startPacket()
	if !c.appendBunch(h, data) {
		c.filled()
		c.split = h.Partial && !h.PartialInitial && !h.Reliable
		c.FlushNet()
		c.split, before = false, 0
		c.startPacket()
		if !c.appendBunch(h, data) {
			panic(fmt.Sprintf("netconn: a bunch of %d bits doesn't fit an empty packet", h.Bits))
		}
	}
	if !ready || seq < 0 && c.Table().Waiting() > 0 {
		bytes := (c.out.Len() - before + 7) / 8
		if before == 0 {
			bytes += c.cfg.PacketOverhead
		}
		c.pace.wrote(seq >= 0, bytes)
	}
	c.note(ch, seq)
	c.pendingOpening = c.pendingOpening || ch.OpenedLocally() && !ch.OpenAcked()
	c.pendingBlind = c.pendingBlind || seq < 0 && c.channels.Unopened(ch, c.notify.OutID())
	c.flow.timeSensitive = true
	id := c.notify.OutID()
	c.traceBunch(nettrace.BunchSent, id, h)
	return id
}

// PacketID is the id of the packet that a bunch would be in; see channel.Outlet.
func (o *outlet) PacketID() int64 { return o.conn().notify.OutID() }

// Heard is the id of the newest packet of the peer's; see channel.Outlet.
func (o *outlet) Heard() int64 {
	c := o.conn()
	if c.coder == nil {
		return 0
	}
	return max(c.coder.heard, c.notify.InID())
}

// EndPacket sends the current packet; see channel.Outlet.
func (o *outlet) EndPacket() {
	if c := o.conn(); c.out.Len() > 0 {
		c.FlushNet()
	}
}

// appendBunch writes a bunch, or nothing if it doesn't fit.
func (c *Conn) appendBunch(h *bunch.Header, data []byte) bool {
	m := c.out.Mark()
	c.proto.WriteHeader(&c.out, h)
	lenEnd := c.out.Len()
	c.out.WriteBitsFrom(data, 0, h.Bits)
	if c.out.Err() != nil {
		c.out.Rollback(m)
		return false
	}
	c.lastEnd, c.lastBits = c.out.Len(), h.Bits
	c.lastLen = lenEnd - c.proto.LengthBits(h.Bits)
	return true
}

// ExtendBunch appends to the last bunch; see channel.Outlet.
func (o *outlet) ExtendBunch(data []byte, bits int) bool {
	c := o.conn()
	if c.lastEnd == 0 || c.lastEnd != c.out.Len() {
		return false
	}
	if c.tooLong(bits) {
		return false
	}
	width := c.proto.LengthBits(c.lastBits + bits)
	wider := width - c.proto.LengthBits(c.lastBits)
	if bits+wider > c.out.Free() {
		return false
	}
	if wider != 0 {
		c.moveLast(width)
	}
	c.out.WriteBitsFrom(data, 0, bits)
	c.lastBits += bits
	c.out.PatchBits(c.lastLen, uint64(c.lastBits), width)
	c.lastEnd = c.out.Len()
	return true
}

// moveLast moves the last bunch's payload when its length field changes width: the lengths below a power of two take a bit less when
// 8*MaxPacket isn't one. It happens at most twice a bunch.
func (c *Conn) moveLast(width int) {
	if c.scratch == nil {
		c.scratch = make([]byte, len(c.buf))
	}
	var r bitio.Reader
	r.Reset(c.buf[c.cfg.Headroom:], c.lastEnd)
	r.Skip(c.lastEnd - c.lastBits)
	r.ReadBitsTo(c.scratch, c.lastBits)
	c.out.Truncate(c.lastLen)
	c.out.WriteBits(0, width)
	c.out.WriteBitsFrom(c.scratch, 0, c.lastBits)
}

// FlushNet sends the current packet. If there is none, it sends an empty packet when acks or the keep-alive are due.
func (c *Conn) FlushNet() {
	if c.Closed() {
		return
	}
	c.flow.timeSensitive = false
	if c.out.Len() == 0 {
		if !c.acksDue() && !c.keepAliveDue() {
			return
		}
		if c.windowFull() && !c.mayForce() {
			c.sendAgain()
			return
		}
		c.countEmpty()
		c.startPacket()
	}
	c.sendCopies(c.copies())
	if c.acksDue() && !c.split && !c.windowFull() && !c.Closed() { // that packet's header had no room for them
		c.sendAckPacket()
	}
	if c.search != nil && !c.split {
		c.trySize()
	}
}

// sendCopies sends the current packet, filled with copies of earlier packets' bunches, and more packets for the
// remaining copies. After the peer reported a loss the first copy of each bunch is sent at once: the bunches that the
// loss held up, and the report of it, mustn't be lost too. Between the parts of an unreliable bunch no more packets are sent: copies without
// room ride in the packets behind them.
func (c *Conn) sendCopies(copies int) {
	if c.split {
		c.sendPacket(copies, false)
		return
	}
	twice := c.flow.lossNews && copies > 1 && c.pending > 0
	c.flow.lossNews = false
	more := c.sendPacket(copies, false) || twice
	for extra := copies; more && extra > 0 && !c.bunchesFull(0) && c.reserve.leaves(c.Budget(), c.proto.PacketBits()/8+c.cfg.PacketOverhead) && !c.Closed(); extra-- {
		c.startPacket()
		more = c.sendPacket(copies, twice)
		twice = false
	}
}

// sendPacket sends the current packet with copies. more reports that some copies didn't fit.
func (c *Conn) sendPacket(copies int, twice bool) (more bool) {
	if c.pending > 0 && c.cfg.Redundancy.on() {
		c.reserve.used += (c.out.Len()+7)/8 + c.cfg.PacketOverhead
	}
	more = c.repeat(copies, twice)
	fresh := c.notify.RefreshHeader(&c.out, c.headerPos) // false if there are now more acks than the header has room for
	packet := c.endPacket()
	id := c.notify.Commit()
	carries, counts := c.pending > 0, c.pending > 0 || c.pendingProbe
	if c.coder != nil {
		symbols := 0
		packet, symbols = c.addTrailer(packet, id, carries)
		counts = counts || symbols > 0
	}
	size := len(packet) - c.cfg.Headroom
	c.sent(id, size)
	if fresh { // otherwise so many are owed one that it is due
		c.acksLeft(id)
	}
	if e, ok := c.cfg.Controller.(congestion.Emptier); ok && !counts {
		e.OnSentEmpty(c.now, id, size+c.cfg.PacketOverhead)
	} else {
		c.cfg.Controller.OnSent(c.now, id, size+c.cfg.PacketOverhead)
	}
	c.trace(nettrace.PacketSent, id, uint64(size), 0)
	c.emit(packet)
	if carries {
		c.skipSequence()
	}
	return more
}

// emit passes a packet to the link.
func (c *Conn) emit(packet []byte) {
	p := packet[c.cfg.Headroom:]
	c.flow.lastSend, c.flow.inTick = c.now, true
	c.Counters.PacketsSent++
	c.Counters.BytesSent += uint64(len(p))
	c.tracePacket(true, p)
	c.cfg.LowLevelSend(packet)
}

// FlushWritten sends what was written and the acks that are due, without waiting for Tick.
func (c *Conn) FlushWritten(now time.Duration) {
	c.now = max(c.now, now)
	if c.out.Len() > 0 || c.acksDue() {
		c.FlushNet()
	}
	if c.coder != nil {
		c.sendRepairs()
	}
}

// oweAcks has acks sent after at most a delay.
func (c *Conn) oweAcks(delay time.Duration) {
	at := c.now + delay
	if !c.flow.dirtyAcks || at < c.flow.acksAt {
		c.flow.acksAt = at
	}
	c.flow.dirtyAcks = true
}

// acksLeft notes that packet id has the acks of now.
func (c *Conn) acksLeft(id int64) {
	if c.flow.dirtyAcks {
		c.flow.owed, c.flow.owedAt = id, c.now
	}
	c.flow.dirtyAcks, c.flow.unheard = false, 0
}

// acksLost reports whether the acks that were owed last have probably not arrived: the peer is heard, and doesn't ack their packet for longer than that takes.
func (c *Conn) acksLost() bool {
	return c.flow.owed >= c.sentPackets.first && c.now-c.flow.owedAt > c.patience()
}

func (c *Conn) acksDue() bool { return c.flow.dirtyAcks && c.now >= c.flow.acksAt }

// sendAckPacket sends an empty packet: its header has the acks.
func (c *Conn) sendAckPacket() {
	c.countEmpty()
	c.startPacket()
	c.sendPacket(0, false)
}

func (c *Conn) countEmpty() {
	c.pace.empty(c)
	if c.flow.dirtyAcks {
		c.Counters.AckOnly++
	} else {
		c.Counters.KeepAlives++
	}
}

// endPacket writes the end of a packet, and returns it with its headroom.
func (c *Conn) endPacket() []byte {
	c.out.SetLimit(8 * (len(c.buf) - c.cfg.Headroom))
	handler.WriteTerminator(&c.out)
	c.patchPacketInfo()
	if c.cfg.Handlers != nil {
		c.cfg.Handlers.End(&c.out)
	}
	packet := c.buf[:c.cfg.Headroom+len(c.out.Bytes())]
	c.out.Reset(nil)
	c.lastEnd = 0
	c.channels.PacketEnded()
	return packet
}

func (c *Conn) traceBunch(kind nettrace.Kind, id int64, h *bunch.Header) {
	if c.cfg.Trace != nil {
		c.traceHeader(kind, id, h)
	}
}

func (c *Conn) traceHeader(kind nettrace.Kind, id int64, h *bunch.Header) {
	c.event = nettrace.Event{At: c.now, Kind: kind, Conn: c.cfg.ID, PacketID: id, ChIndex: h.ChIndex, ChSequence: int64(h.WireSeq), Bits: uint32(h.Bits), A: bunchFlags(h)}
	c.cfg.Trace.Trace(&c.event)
}

func bunchFlags(h *bunch.Header) (flags uint64) {
	set := func(is bool, flag uint64) {
		if is {
			flags |= flag
		}
	}
	set(h.Reliable, nettrace.Reliable)
	set(h.Open, nettrace.Open)
	set(h.Close, nettrace.Close)
	set(h.Partial, nettrace.Partial)
	return flags
}
