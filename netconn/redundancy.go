package netconn

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// repeat puts small reliable bunches that aren't acked into the spare room of the
// packet about to be sent, newest first: the packets that carried them lately are
// the least likely to have been acked. A copy keeps its ChSequence; a peer that has
// the bunch drops it.
func (c *Conn) repeat() {
	copies := c.copies()
	if copies == 0 {
		return
	}
	s := &c.sentPackets
	end := s.noteTail - int64(s.pending)
	seen := 0
	for id := s.next - 1; id >= s.first && id >= s.next-int64(copies); id-- {
		n := int64(s.packetAt(id).notes)
		for i := end - n; i < end; i++ {
			if seen++; seen > maxRepeatScan {
				return
			}
			c.repeatNote(*s.noteAt(i), copies)
		}
		end -= n
	}
}

// maxRepeatScan bounds the work a packet spends on looking for bunches to repeat.
const maxRepeatScan = 64

func (c *Conn) repeatNote(n note, copies int) {
	if n.seq < 0 {
		return
	}
	rec, ok := n.ch.NeedsCopy(n.seq)
	if !ok || rec.Header.Bits > c.cfg.Redundancy.MaxBits || rec.PacketID == c.notify.OutID() || rec.Copied(copies) {
		return
	}
	if !c.appendBunch(&rec.Header, rec.Data) {
		return
	}
	c.lastEnd = 0 // not to be merged into
	c.note(n.ch, n.seq)
	rec.Repeat(c.notify.OutID())
	c.Counters.Copies++
	c.traceBunch(nettrace.BunchSent, c.notify.OutID(), &rec.Header)
}

// copies is how often a bunch is repeated now. Adaptive: so often that all copies of
// a bunch are lost less than once in ten thousand.
func (c *Conn) copies() int {
	r := c.cfg.Redundancy
	if !r.Adaptive || r.Copies == 0 {
		return r.Copies
	}
	p := c.rates.lossRate
	if p < 0.002 {
		return 0
	}
	n := math.Ceil(math.Log(1e-4)/math.Log(math.Min(p, 0.9))) - 1
	return max(1, min(r.Copies, int(n)))
}

// A tail probe is a packet sent when reliable bunches wait for their ack and
// nothing else is sent that could reveal their loss.
const maxProbes = 3

// probeAt is when the next tail probe is due: soon after the last packet while
// copies are still owed, otherwise after a round trip and some.
func (c *Conn) probeAt() (time.Duration, bool) {
	s := &c.sentPackets
	if s.noteHead == s.noteTail-int64(s.pending) || c.rtt.smoothed == 0 || c.windowFull() {
		return 0, false
	}
	if c.flow.probes < c.copies() {
		return c.flow.lastSend + repeatInterval, true
	}
	if c.flow.probes >= c.copies()+maxProbes {
		return 0, false
	}
	return c.flow.lastSend + (c.rtt.smoothed+4*c.rtt.variance)<<max(0, c.flow.probes-c.copies()), true
}

// repeatInterval spaces packets that only repeat: a tick of a 60 Hz game.
const repeatInterval = 16 * time.Millisecond

// probe sends a tail probe when it is due.
func (c *Conn) probe() {
	at, ok := c.probeAt()
	if !ok || c.now < at || c.out.Len() > 0 {
		return
	}
	c.flow.probes++
	c.oweAcks(0) // an empty packet says as much as a full one
}
