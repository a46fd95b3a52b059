package netconn

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// repeat puts small reliable bunches that aren't acked into the spare room of the
// packet about to be sent: those of the last moments at which packets were sent, as many as there
// are copies, newest first; with twice also of this moment. A copy keeps its ChSequence; a peer that has
// the bunch drops it. more says that there are some for which there was no room.
func (c *Conn) repeat(copies int, twice bool) (more bool) {
	if copies == 0 {
		return false
	}
	s := &c.sentPackets
	end := s.noteTail - int64(s.pending)
	seen, moments, moment := 0, 0, c.now
	for id := s.next - 1; id >= s.first; id-- {
		p := s.packetAt(id)
		if p.at != moment {
			moment = p.at
			if moments++; moments > copies {
				break
			}
		}
		n := int64(p.notes)
		for i := end - n; i < end && (moments > 0 || twice); i++ {
			if seen++; seen > maxRepeatScan {
				return more
			}
			if !c.repeatNote(*s.noteAt(i), copies, moments == 0) {
				more = true
			}
		}
		end -= n
	}
	return more
}

// maxRepeatScan bounds the work a packet spends on looking for bunches to repeat.
const maxRepeatScan = 64

// repeatNote is false when the packet has no room for a bunch that is to be repeated.
func (c *Conn) repeatNote(n note, copies int, twice bool) bool {
	if n.seq < 0 {
		return true
	}
	rec, ok := n.ch.NeedsCopy(n.seq)
	if !ok || rec.Header.Bits > c.cfg.Redundancy.MaxBits || rec.Header.Partial || rec.Copied(copies) || c.ridesNow(rec.PacketID, twice) {
		return true
	}
	if !c.appendBunch(&rec.Header, rec.Data) {
		return false
	}
	c.lastEnd = 0 // not to be merged into
	c.note(n.ch, n.seq)
	rec.Repeat(c.notify.OutID())
	c.Counters.Copies++
	c.traceBunch(nettrace.BunchSent, c.notify.OutID(), &rec.Header)
	return true
}

// ridesNow reports whether packet id is the one under construction, or with twice unset another that is
// sent at this moment.
func (c *Conn) ridesNow(id int64, twice bool) bool {
	s := &c.sentPackets
	return id == c.notify.OutID() || !twice && id >= s.first && id < s.next && s.packetAt(id).at == c.now
}

// copies is how often a bunch is repeated now. Adaptive: so often that at 60 packets a second all copies of
// a bunch are lost less than once in twenty thousand, as each time delays some seven messages behind it, and less than one
// in a thousand shall be. With more packets a second each time delays more, so it shall happen less often.
func (c *Conn) copies() int {
	r := c.cfg.Redundancy
	if !r.Adaptive || r.Copies == 0 {
		return r.Copies
	}
	p, again := c.rates.expect()
	if p < 0.002 {
		return 0
	}
	often := 5e-5 * 60 / max(60, c.rates.figures.OutPackets)
	n := math.Ceil(math.Log(often/p) / math.Log(math.Min(again, 0.9)))
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
