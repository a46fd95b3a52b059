package netconn

import (
	"math/bits"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// sentPackets remembers what each packet in flight carried, oldest first. Acks
// and naks come in the order of the packets, so both rings are queues.
//
// Invariant: packets first..next-1 at packets[id%len]; their notes are
// notes[noteHead..noteTail), in the same order, and those after belong to the packet
// under construction.
type sentPackets struct {
	packets            []sentPacket
	first, next        int64
	notes              []note
	noteHead, noteTail int64
	mostNotes          int64
	inFlight, noted    used  // packets and notes
	carrying           int   // packets in flight that have notes
	pending            int32 // notes of the packet under construction
	pendingReliable    bool
	pendingOpening     bool
	pendingBlind       bool
	pendingProbe       bool
	pendingFull        bool
}

// windowMemory is the bytes of Config.MaxMemory that a packet of the window asks for, so that recordBytes is a sixteenth of it at most.
const windowMemory = 1 << 10

// recordBytes is what remembers the packets of a full window: rings of twice as many, as acks and keep-alives go on beyond it, but never more than maxInFlight.
func recordBytes(window int) int {
	const each = int(unsafe.Sizeof(sentPacket{})) + 8 // and packetnotify's
	return each << bits.Len(uint(min(2*window, maxInFlight)-1))
}

type sentPacket struct {
	at    time.Duration
	bytes int32
	notes int32
	// reliable says that there are reliable bunches among the notes, opening that the peer may
	// refuse them, as it hasn't acked the open of their channel.
	reliable, opening bool
	blind             bool // with unreliable bunches of a channel whose open isn't in it, and wasn't acked
	skipped           bool // never sent
	probe             bool // of the path's size
}

// note is a bunch in a packet: a reliable one by its sequence, or -1.
type note struct {
	ch  *channel.Channel
	seq int64
}

// notesFull reports whether so many bunches are in flight that what remembers them is about to take more than an eighth of Config.MaxMemory, which counts
// only those of reliable bunches, as long as their channels are there. What is in flight already may be copied into a few probes beyond that.
func (c *Conn) notesFull() bool { return c.noteTail-c.noteHead >= c.mostNotes }

// mostNotes is the count from which notesFull is true.
func mostNotes(maxMemory int) int64 {
	ring := int64(1) << (bits.Len(uint(maxMemory/8/int(unsafe.Sizeof(note{})))) - 1)
	return ring - ring/8
}

// note remembers that the packet under construction carries a bunch.
func (c *Conn) note(ch *channel.Channel, seq int64) {
	s := &c.sentPackets
	if seq < 0 && s.pending > 0 {
		if last := s.noteAt(s.noteTail - 1); last.ch == ch && last.seq == seq {
			return // told once a packet
		}
	}
	if int(s.noteTail-s.noteHead) == len(s.notes) {
		s.resizeNotes(max(smallRing, 2*len(s.notes)))
	}
	c.channels.Noted(ch)
	*s.noteAt(s.noteTail) = note{ch, seq}
	s.noteTail++
	s.noted.note(s.noteTail - s.noteHead)
	s.pending++
	s.pendingReliable = s.pendingReliable || seq >= 0
}

func (s *sentPackets) noteAt(i int64) *note { return &s.notes[i&int64(len(s.notes)-1)] }

// sent files the packet that was under construction under its id.
func (c *Conn) sent(id int64, size int) {
	s := &c.sentPackets
	c.sizeSent(size)
	if s.first == s.next {
		s.first, s.next = id, id
	}
	if int(s.next-s.first) == len(s.packets) {
		s.resizePackets(max(smallRing, 2*len(s.packets)))
	}
	*s.packetAt(id) = sentPacket{at: c.now, bytes: int32(size), notes: s.pending, reliable: s.pendingReliable, opening: s.pendingOpening, blind: s.pendingBlind, probe: s.pendingProbe}
	if s.pending > 0 {
		c.flow.lastOwed = c.now
		s.carrying++
	}
	s.next, s.pending, s.pendingReliable, s.pendingOpening, s.pendingBlind, s.pendingProbe, s.pendingFull = id+1, 0, false, false, false, false, false
	s.inFlight.note(s.next - s.first)
	c.flow.unanswered = false
}

func (s *sentPackets) packetAt(id int64) *sentPacket { return &s.packets[id&int64(len(s.packets)-1)] }

// newest is the packet sent last, while some are in flight.
func (s *sentPackets) newest() *sentPacket { return s.packetAt(s.next - 1) }

// fates is a Conn as its packet notification sees it.
type fates Conn

func (f *fates) conn() *Conn { return (*Conn)(f) }

// PacketAcked: our packet id has arrived.
func (f *fates) PacketAcked(id int64) {
	c := f.conn()
	p := *c.packetAt(id)
	if p.skipped {
		c.sentPackets.first++
		c.skip.acked = true
		return
	}
	c.Counters.PacketsAcked++
	c.flow.probes, c.flow.answers, c.flow.lastFate = 0, 0, c.now
	c.refusals.acked(&p)
	lost := c.coder.wasRepaired(id)
	if c.path != nil && !lost {
		c.path.acked(c.now, &p)
		if p.probe {
			c.refusals.wide()
		}
	}
	c.sizeArrived(id, &p)
	c.rates.outAcked += uint64(p.bytes)
	rtt := c.now - p.at
	owed := p.notes > 0 || p.probe                // nobody owes an ack for an empty packet: it waits for the next
	overdue := c.flow.ackedAt-p.at > c.patience() // its first ack was in a packet that is missing
	if lost || overdue {
		rtt = 0
	} else if owed || rtt < c.rtt.smoothed || c.rtt.smoothed == 0 {
		c.rtt.sample(rtt, owed)
	} else {
		rtt = 0
	}
	if lost { // the path lost it, though nothing in it
		c.Counters.PacketsRepaired++
		c.cfg.Controller.OnLost(c.now, id, int(p.bytes)+c.cfg.PacketOverhead)
	} else {
		c.cfg.Controller.OnAck(c.now, id, int(p.bytes)+c.cfg.PacketOverhead, rtt)
	}
	if c.coder != nil && rtt > 0 {
		loss, _ := c.rates.expect()
		c.coder.queue.sample(c.now, rtt, loss)
	}
	c.trace(nettrace.PacketAcked, id, uint64(rtt), 0)
	c.pathLost(id, lost, lost)
	c.sentPackets.first++
	for i := c.noteHead; i < c.noteHead+int64(p.notes); i++ {
		n := *c.noteAt(i)
		c.channels.Acked(n.ch, n.seq, id)
	}
	c.settle(p.notes, id, true)
}

// settle tells the handlers of the channels that a packet carried bunches of, and forgets its notes.
func (c *Conn) settle(notes int32, id int64, arrived bool) {
	if notes > 0 {
		c.carrying--
	}
	for range notes {
		n := *c.noteAt(c.noteHead)
		*c.noteAt(c.noteHead) = note{}
		c.noteHead++
		c.channels.Settled(n.ch, id, arrived)
	}
}

// PacketLost: our packet id is lost, or was refused. What was reliable in it is due again; nothing is sent
// here.
func (f *fates) PacketLost(id int64) {
	c := f.conn()
	p := *c.packetAt(id)
	if p.skipped {
		c.sentPackets.first++
		return
	}
	c.Counters.PacketsLost++
	c.flow.answers, c.flow.lastFate = 0, c.now
	c.refusals.lost(c.now, &p)
	c.trace(nettrace.PacketNak, id, 0, 0)
	if c.isSizeProbe(id) || c.refused(&p, id) && c.refusals.pardon(p.bytes) {
		c.cfg.Controller.OnAck(c.now, id, int(p.bytes)+c.cfg.PacketOverhead, 0)
	} else {
		c.cfg.Controller.OnLost(c.now, id, int(p.bytes)+c.cfg.PacketOverhead)
		c.pathLost(id, true, false)
		c.losePath(&p)
	}
	c.sizeLost(id, &p)
	c.sentPackets.first++
	for i := c.noteHead; i < c.noteHead+int64(p.notes); i++ {
		n := *c.noteAt(i)
		c.channels.Naked(n.ch, n.seq, id)
	}
	c.settle(p.notes, id, false)
}

// refused reports whether the peer refused a packet if it got it, as a channel's open that left before it was lost: that says nothing of the path. Nor does
// the fate of one that opens a channel, while the control channel's open or a message of the login is missing.
func (c *Conn) refused(p *sentPacket, id int64) bool {
	if p.opening && c.channels.ControlLost(id) {
		return true
	}
	if !p.blind {
		return false
	}
	for i := c.noteHead; i < c.noteHead+int64(p.notes); i++ {
		if n := c.noteAt(i); n.seq < 0 && c.channels.Unopened(n.ch, id) {
			return true
		}
	}
	return false
}

// sentNothing files a sequence that no packet has.
func (c *Conn) sentNothing(id int64) {
	c.sent(id, 0)
	c.packetAt(id).skipped = true
}
