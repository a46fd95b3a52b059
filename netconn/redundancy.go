package netconn

import (
	"math"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// repeat adds copies of small unacked reliable bunches to the spare room of the packet about to be sent: those from the
// last copies send times, newest first; with twice also those sent now. A copy keeps its ChSequence, so a peer that has
// the bunch drops it. more reports that some had no room.
func (c *Conn) repeat(copies int, twice bool) (more bool) {
	if copies == 0 || c.notesFull() {
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

// repeatTail adds copies of reliable bunches in flight to a tail probe, oldest first, of any size.
func (c *Conn) repeatTail() {
	s := &c.sentPackets
	end := min(s.noteTail, s.noteHead+maxRepeatScan)
	for i := s.noteHead; i < end; i++ {
		n := *s.noteAt(i)
		h, data, last := c.channels.Copy(n.ch, n.seq, c.copies()+maxProbes)
		if h == nil || last == c.notify.OutID() {
			continue
		}
		if !c.ride(n, h, data) {
			return
		}
	}
}

// maxRepeatScan bounds how many bunches a packet checks for copies.
const maxRepeatScan = 64

// repeatNote adds a copy if it is due. It returns false when the packet has no room for it.
func (c *Conn) repeatNote(n note, copies int, twice bool) bool {
	h, data, last := c.channels.Copy(n.ch, n.seq, copies)
	if h == nil || h.Bits > c.cfg.Redundancy.MaxBits || h.Partial || c.ridesNow(last, twice) {
		return true
	}
	budget, bytes := c.Budget(), (h.Bits+7)/8
	if !c.reserve.leaves(budget, bytes) || !c.ride(n, h, data) {
		return false
	}
	c.reserve.took(budget, bytes)
	return true
}

// ride adds a copy of a bunch to the current packet, if there is room.
func (c *Conn) ride(n note, h *bunch.Header, data []byte) bool {
	if !c.appendBunch(h, data) {
		return false
	}
	c.note(n.ch, n.seq)
	c.pendingOpening = c.pendingOpening || n.ch.OpenedLocally() && !n.ch.OpenAcked()
	c.channels.Copied(n.ch, n.seq, c.notify.OutID())
	c.Counters.Copies++
	c.traceBunch(nettrace.BunchSent, c.notify.OutID(), h)
	return true
}

// ridesNow reports whether packet id, the last with the bunch, is the current packet or, unless twice, one sent now.
func (c *Conn) ridesNow(id int64, twice bool) bool {
	return id == c.notify.OutID() || !twice && c.packetAt(id).at == c.now
}

// MayMerge keeps bunches small enough for copies while there are any; see channel.Outlet.
func (o *outlet) MayMerge(bits int) bool {
	c := o.conn()
	return bits <= c.cfg.Redundancy.MaxBits || c.copies() == 0
}

// copies is how often a bunch is sent again. Adaptive uses the number of copies that keeps the probability of losing all
// below 5e-5, at 60 packets a second: each such loss delays about seven later messages, and less than one message in a
// thousand shall be late. At more packets a second each loss delays more messages, so the bound is lower.
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
