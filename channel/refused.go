package channel

import "github.com/bunchnet/bunchnet/bunch"

// What the peer may be refusing: it has no room for it until something else has come, or doesn't take the channel yet. That looks like a loss, and would be
// sent in vain again and again, at the cost of the one channel that the peer takes. So a channel is held to be refused when its oldest
// bunch was lost refusedOften, or its open is lost, until its oldest bunch is acked. Refused channels take turns with each other, and with
// what was never sent. In a turn a channel sends a packet of its own with its oldest bunches: a packet is refused with all
// that is in it, and what shared one with refused bunches wouldn't be known to have arrived. After maxTurns, and fewer each time, the channel waits until it knows what
// became of its oldest bunch.

// refusedOften is how often a bunch must be lost for that.
const refusedOften = 3

// maxTurns is for bunches that were lost refusedOften, for paths that lose much; lostMost is when they have become one.
const (
	maxTurns = 8
	lostMost = refusedOften + 3
)

// mayBeRefused is asked of a bunch that was lost. Of the control channel's only parts are.
func (t *Table) mayBeRefused(ch *Channel, rec *outRec) bool {
	if ch.refused || rec.seq == ch.out.first && rec.lost >= refusedOften && (ch.index != 0 || rec.header.Partial) {
		return true
	}
	return ch.index != 0 && ch.openedLocally && !ch.openAcked
}

// refuse has a bunch that waits do so for its channel's turn.
func (t *Table) refuse(ch *Channel, rec *outRec) {
	if !ch.refused || rec.seq == ch.out.first {
		ch.turns = maxTurns >> max(0, int(rec.lost)-refusedOften)
	}
	rec.refused, ch.refused = true, true
	ch.numRefused++
	switch {
	case ch.inTurn:
		t.refused.waiting++
	case ch.turns > 0:
		ch.inTurn = true
		t.refused.waiting += int(ch.numRefused)
		t.refused.add(ch)
	}
}

// notRefused takes a bunch out of those.
func (t *Table) notRefused(ch *Channel, rec *outRec) {
	rec.refused = false
	ch.numRefused--
	if ch.inTurn {
		t.refused.waiting--
	}
}

// taken ends that for a channel whose oldest bunch is acked: what waits of it is due.
func (t *Table) taken(ch *Channel) {
	ch.refused, ch.turns = false, 0
	for seq := ch.out.first; seq < ch.firstFresh() && ch.numRefused > 0; seq++ {
		if rec := ch.out.at(seq); rec.refused {
			t.notRefused(ch, rec)
			t.dueOf(ch).push(ch, seq)
		}
	}
}

// nextDue is the oldest bunch of a refused channel that waits, or nil.
func (ch *Channel) nextDue() *outRec {
	if ch.numRefused == 0 {
		return nil
	}
	return ch.oldestDue(ch.firstFresh())
}

// pumpRefused sends what the refused channel whose turn it is has in it, if there is one, and reports whether the connection let it.
func (t *Table) pumpRefused() bool {
	q := &t.refused
	for q.len() > 0 {
		ch := q.list[q.head]
		if ch.closed {
			q.stale--
			q.drop()
			continue
		}
		rec := ch.nextDue()
		if ch.turns == 0 || rec == nil {
			t.endTurn(ch)
			continue
		}
		apart := rec.lost >= refusedOften
		if !t.outlet.MaySend(rec.header.Bits) {
			return false
		}
		if apart {
			if t.outlet.EndPacket(); !t.outlet.MaySend(rec.header.Bits) {
				return false
			}
		}
		t.freshTurn = 0
		for first := true; rec != nil && (first || apart && t.conn.FreeBits() >= rec.header.Bits+bunch.MaxHeaderBits); first = false {
			t.notWaiting(ch, rec)
			t.transmit(ch, rec)
			t.freshTurn += rec.header.Bits
			rec = ch.nextDue()
		}
		if apart {
			t.outlet.EndPacket()
		}
		t.last = lastBunch{}
		if ch.turns--; ch.turns == 0 || rec == nil {
			t.endTurn(ch)
		} else {
			q.drop()
			q.add(ch)
		}
		return true
	}
	return true
}

// endTurn takes the first channel out of those that have turns.
func (t *Table) endTurn(ch *Channel) {
	ch.inTurn = false
	t.refused.waiting -= int(ch.numRefused)
	t.refused.drop()
}
