package channel

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// controlResend is how long an unacked bunch of an unacked control channel waits
// before it is repeated.
const controlResend = time.Second

// mustQueue reports whether a payload for the control channel goes to the queue:
// always behind what is queued, otherwise when OutRec has no room for all its parts.
func (ch *Channel) mustQueue(bits int) bool {
	return len(ch.queued()) > 0 || ch.out.len()+ch.table.parts(bits) > ch.table.maxOut
}

func (ch *Channel) enqueue(out *bunch.Out) error {
	t := ch.table
	bits := out.PayloadBits()
	n := (bits + 7) / 8
	cost := t.queuedCost(bits)
	full := !t.fitsOut(0, cost, 1) // one bunch more: that of whoever's turn it is
	if full && t.parts(bits) > 1 { // it is the game's that is large, and not the peer that acks nothing
		t.Counters.ReliableFull++
		return errMemoryFull
	}
	r := ch.needRare()
	if len(r.queue) >= t.cfg.MaxQueuedControl || full {
		t.conn.Fail(ErrControlQueueFull, true)
		return ErrControlQueueFull
	}
	q := *out
	q.Data, q.Bits = t.cfg.Pool.Get(n), bits
	copy(q.Data, out.Data)
	r.queue = append(r.queue, q)
	t.calm = false
	t.unacked++
	r.keptSent += int32(cost)
	t.heldOut += cost
	t.Counters.QueuedControl++
	return nil
}

// queuedCost is what a payload counts while it waits: where it has parts also what these will, so that there is room for them when it is their turn.
func (t *Table) queuedCost(bits int) int {
	n := bufferSize((bits+7)/8) + queuedCost
	if parts := t.parts(bits); parts > 1 {
		n += parts * (outCost + 1<<minClass)
	}
	return n
}

// tickControl drains the queue as far as there is room and repeats an open that nobody acks.
func (ch *Channel) tickControl(now time.Duration) {
	t, r := ch.table, ch.rare
	if r == nil {
		return // nothing waits, and the open is acked or the peer's
	}
	n := 0
	for n < len(r.queue) && ch.openAcked && !ch.Closing() {
		q := &r.queue[n]
		if ch.out.len()+t.parts(q.Bits) > t.maxOut {
			break
		}
		cost := t.queuedCost(q.Bits)
		t.heldOut -= cost
		if _, err := ch.send(q, false, 0); err != nil {
			t.heldOut += cost
			break
		}
		t.unacked--
		r.keptSent -= int32(cost)
		t.cfg.Pool.Put(q.Data)
		n++
	}
	if n > 0 {
		kept := copy(r.queue, r.queue[n:])
		clear(r.queue[kept:])
		r.queue = r.queue[:kept]
		if kept == 0 {
			r.queue = nil
			ch.dropRare()
		}
	}
	if !ch.openedLocally || ch.openAcked || !ch.openSent || ch.out.len() > 8 {
		return
	}
	if now-r.lastResend < controlResend {
		return
	}
	r.lastResend = now
	for seq := ch.out.first; seq < ch.out.next; seq++ {
		if rec := ch.out.at(seq); !rec.acked && !rec.waiting && t.outlet.MaySend(rec.header.Bits) {
			t.Counters.Resent++
			t.transmit(ch, rec)
		}
	}
}
