package channel

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// When the peer closes a channel, some of its reliable bunches may not be acked. They are dropped, but the index's sequence continues
// after them, and the peer waits for those that didn't arrive. So the index's next channel begins with empty bunches in their place; the peer
// drops those that it had received.

// noteGap stores the first sequence of a closed channel that may not have arrived.
func (s *slot) noteGap(ch *Channel) {
	if ch.out.first < ch.out.next {
		s.gap = ch.out.first
	}
}

// fillGap sends empty bunches for the sequences that the index's previous channels left unacked. It returns false when
// there is no memory for them, or for a channel that this end opens when mayFill has it wait: the peer may close it, and the game open it again, again and again.
func (t *Table) fillGap(ch *Channel) bool {
	s := t.slotAt(ch.index)
	if s.gap == 0 || ch.out.len() > 0 {
		return true
	}
	n := int(s.outReliable-s.gap) + 1
	if !t.fitsOut(ch.index, 0, n) {
		t.Counters.MemoryFull++
		return false
	}
	if ch.openedLocally && !t.mayFill(n) {
		return false
	}
	ch.out.first, ch.out.next = s.gap, s.gap
	s.gap, ch.needRare().gapEnd = 0, s.outReliable+1
	for ch.out.next <= s.outReliable {
		rec := ch.out.push(t.cfg.Pool)
		rec.header = bunch.Header{ChIndex: ch.index, Name: ch.typ.Name, Reliable: true, WireSeq: t.wireSeq(rec.seq)}
		rec.noMerge, rec.waiting = true, true
		t.unacked++
		t.heldOut += outCost
		t.Counters.Filled++
		ch.queue().push(ch)
	}
	(*Machine)(t).Pump()
	return true
}

// mayFill bounds the work that a peer can cause by opening channels again and again: at once, the gaps of all channels together are at most as
// long as one may be, and after that one sequence longer in each fillTime. Packets of further opens are refused, and so sent again.
func (t *Table) mayFill(n int) bool {
	if t.filled > 0 && t.filled+n > t.cfg.ReliableBuffer {
		return false
	}
	t.filled += n
	return true
}

// fillTime is how long a sequence of a gap counts in mayFill: a tiny packet opens a channel with a gap of the longest ReliableBuffer, 8190, four times a second.
const fillTime = 30 * time.Microsecond

// unfill forgets at a tick what was filled long enough ago.
func (t *Table) unfill(now time.Duration) {
	t.unfilled = min(t.unfilled, now)
	n := (now - t.unfilled) / fillTime
	t.unfilled += n * fillTime
	t.filled -= int(min(n, time.Duration(t.filled)))
}
