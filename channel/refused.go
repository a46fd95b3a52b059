package channel

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// Channels that the peer may be refusing. A peer refuses bunches when it has no room for them until others have arrived, or when it doesn't accept
// the channel yet. To the sender that looks like loss. Sending them again and again would starve the channels that the peer accepts.
//
// So a channel counts as refused when its oldest bunch was lost refusedOften times, and nothing of the channel was acked meanwhile, or when its open is
// lost, until its oldest bunch is acked, or another one that the peer wouldn't have taken either. Refused
// channels take turns with each other and with bunches never sent, first those of channels that don't count as refused. In its turn a channel sends a packet of its own with its oldest bunches,
// because a packet is refused as a whole, and other bunches in it would count as lost too. After maxTurns turns, fewer each time, the
// channel waits until the fate of its oldest bunch is known.
//
// To the rate controller refused packets look like loss too, which slows down the whole connection. So once manyVain turns were in vain, turns
// come at growing intervals and leave most of the bandwidth to bunches never sent, and split payloads begin one at a time, until enough
// turns succeed.

// refusedOften is how often a bunch must be lost before its channel counts as refused.
const refusedOften = 3

// maxTurns is for bunches that were lost refusedOften, for paths that lose much; lostMost is when they have become one.
const (
	maxTurns = 8
	lostMost = refusedOften + 3
)

// dueForEach is how many of a channel's bunches are due for each that a short peer took.
const dueForEach = 2

// While the peer is short, turns are as many milliseconds apart as were in vain, up to mostVain, and followed by vainShare times their bits of what
// was never sent, if there is so much.
const (
	manyVain  = 8
	mostVain  = 100
	vainShare = 7
)

// inVain notes that the oldest bunch of a refused channel was refused once more.
func (t *Table) inVain() {
	t.vain = min(t.vain+1, 2*mostVain)
	if !t.short && t.vain >= manyVain {
		t.short, t.wasShort, t.begunRoom = true, true, 0
	}
}

// notInVain notes that it was taken, or has gone with its channel.
func (t *Table) notInVain() {
	if t.refusing--; t.refusing == 0 {
		t.vain = 0
	}
	t.vain -= min(t.vain, t.vain/4+1)
	t.short = t.short && t.vain > 0
}

// mayTurn reports whether a refused channel may have a turn now.
func (t *Table) mayTurn() bool { return !t.short || t.conn.Now() >= t.nextTurn }

// NextTurn is when a refused channel may have its next turn; ok is false when none waits for that.
func (m *Machine) NextTurn() (at time.Duration, ok bool) {
	return m.nextTurn, m.refused.waiting > 0 && !m.table().mayTurn()
}

// turned notes a turn that took so many bits.
func (t *Table) turned(bits int) {
	t.freshTurn = bits
	if t.short {
		t.freshTurn *= vainShare
		t.nextTurn = t.conn.Now() + time.Duration(min(t.vain, mostVain))*time.Millisecond
	}
}

// opensInVain reports whether the peer has refused the channel's open often.
func (ch *Channel) opensInVain() bool {
	return ch.refused && !ch.openAcked && ch.openedLocally && ch.out.at(ch.out.first).lost >= refusedOften
}

// mayBeRefused reports whether a lost bunch may have been refused. On the control channel only parts are.
func (t *Table) mayBeRefused(ch *Channel, rec *outRec) bool {
	if ch.refused || rec.seq == ch.out.first && rec.lost >= refusedOften && (ch.index != 0 || rec.header.Partial) {
		return true
	}
	return ch.index != 0 && ch.openedLocally && !ch.openAcked
}

// refuse has a waiting bunch wait for its channel's turn.
func (t *Table) refuse(ch *Channel, rec *outRec) {
	if !ch.refused || rec.seq == ch.out.first {
		ch.turns = maxTurns >> max(0, int(rec.lost)-refusedOften)
	}
	if !ch.refused {
		t.refusing++
	}
	t.notAhead(ch, rec)
	rec.refused, ch.refused = true, true
	if rec.seq == ch.out.first && (rec.lost == lostMost || t.short) {
		t.inVain()
	}
	if ch.opensInVain() {
		t.yield(ch)
	}
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

// notRefused ends that for one bunch.
func (t *Table) notRefused(ch *Channel, rec *outRec) {
	rec.refused = false
	t.countAhead(ch, peerCost(rec))
	ch.numRefused--
	if ch.inTurn {
		t.refused.waiting--
	}
}

// taken says that a channel's oldest bunch is acked: the channel no longer counts as refused, and its waiting bunches
// are due. While the peer is short only dueForEach of them are, and as many more for each that is acked: all at once would be lost again if one of them
// is, or is overtaken, as the peer has no room for what comes before its turn.
func (t *Table) taken(ch *Channel) {
	if ch.refused {
		ch.refused, ch.turns = false, 0
		t.notInVain()
	}
	due := int(ch.numRefused)
	if t.short {
		due = min(due, dueForEach)
	}
	for seq := ch.out.first; due > 0; seq++ {
		if rec := ch.out.at(seq); rec.refused {
			rec.lost = min(rec.lost, refusedOften-1) // so that it has all turns if it is refused again
			t.notRefused(ch, rec)
			t.lostAhead(ch, rec)
			t.dueOf(ch).push(ch, seq)
			due--
		}
	}
}

// takes reports whether the ack of any of a channel's bunches says that the peer refuses nothing of the channel: it has no room for what comes early
// before it has none for the oldest, so what of that was lost before was lost by the path. Parts say nothing, and nothing does while the peer is short.
func (t *Table) takes(ch *Channel, rec *outRec) bool {
	return (ch.openAcked || !ch.openedLocally) && !rec.header.Partial && !t.short
}

// nextDue is the oldest waiting bunch of a refused channel, or nil.
func (ch *Channel) nextDue() *outRec {
	if ch.numRefused == 0 {
		return nil
	}
	return ch.oldestDue(ch.firstFresh())
}

// pumpRefused sends the turn of the next refused channel, if there is one. It returns false when the connection didn't
// allow that.
func (t *Table) pumpRefused() bool {
	ch, _ := t.refused.first()
	if ch == nil {
		return true
	}
	rec := ch.nextDue()
	if rec == nil {
		t.endTurn(ch)
		return true
	}
	apart := rec.lost >= refusedOften || t.short
	if !t.outlet.MaySend(rec.header.Bits) {
		return false
	}
	if apart {
		if t.outlet.EndPacket(); !t.outlet.MaySend(rec.header.Bits) {
			return false
		}
	}
	bits := 0
	for first := true; rec != nil && (first || apart && t.conn.FreeBits() >= rec.header.Bits+bunch.MaxHeaderBits); first = false {
		t.notWaiting(ch, rec)
		t.transmit(ch, rec)
		bits += rec.header.Bits
		rec = ch.nextDue()
	}
	t.turned(bits)
	if apart {
		t.outlet.EndPacket()
	}
	if ch.turns--; ch.turns <= 0 || rec == nil {
		t.endTurn(ch)
	} else {
		t.refused.drop()
		t.refused.add(ch)
	}
	return true
}

// endTurn removes the first channel from those that take turns.
func (t *Table) endTurn(ch *Channel) {
	ch.inTurn = false
	t.refused.waiting -= int(ch.numRefused)
	t.refused.drop()
}
