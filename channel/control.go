package channel

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// queued is a bunch that waits for room on the control channel.
type queued struct {
	data    []byte
	bits    int
	noMerge bool
}

// controlResend is how long an unacked bunch of an unacked control channel waits
// before it is repeated.
const controlResend = time.Second

// mustQueue reports whether a bunch for the control channel goes to the queue:
// always behind what is queued, otherwise when OutRec is full.
func (ch *Channel) mustQueue() bool {
	return len(ch.queue) > 0 || ch.out.len() >= ch.table.maxOut()
}

func (ch *Channel) enqueue(out *bunch.Out) error {
	t := ch.table
	bits := out.PayloadBits()
	n := (bits + 7) / 8
	if len(ch.queue) >= t.cfg.MaxQueuedControl || !t.fitsOut(0, bufferSize(n)+queuedCost, 0) {
		t.conn.Fail(ErrControlQueueFull, true)
		return ErrControlQueueFull
	}
	q := queued{data: t.cfg.Pool.Get(n), bits: bits, noMerge: out.NoMerge}
	copy(q.data, out.Data)
	ch.queue = append(ch.queue, q)
	t.calm = false
	t.unacked++
	ch.queueBytes += int32(bufferSize(n) + queuedCost)
	t.heldOut += bufferSize(n) + queuedCost
	t.Counters.QueuedControl++
	return nil
}

// tickControl drains the queue as far as there is room and repeats an open that nobody acks.
func (ch *Channel) tickControl(now time.Duration) {
	t := ch.table
	n := 0
	for n < len(ch.queue) && ch.openAcked && !ch.Closing() {
		q := ch.queue[n]
		if parts := t.parts(q.bits); ch.out.len()+parts > t.maxOut() || !t.fitsOut(0, len(q.data), parts) {
			break
		}
		if _, err := ch.send(&bunch.Out{Data: q.data, Bits: q.bits, Reliable: true, NoMerge: q.noMerge}, false, 0); err != nil {
			break
		}
		t.unacked--
		cost := bufferSize(len(q.data)) + queuedCost
		ch.queueBytes -= int32(cost)
		t.heldOut -= cost
		t.cfg.Pool.Put(q.data)
		n++
	}
	if n > 0 {
		kept := copy(ch.queue, ch.queue[n:])
		clear(ch.queue[kept:])
		ch.queue = ch.queue[:kept]
		if kept == 0 {
			ch.queue = nil
		}
	}
	if !ch.openedLocally || ch.openAcked || !ch.openSent || ch.out.len() > 8 {
		return
	}
	if now-ch.lastResend < controlResend {
		return
	}
	ch.lastResend = now
	for seq := ch.out.first; seq < ch.out.next; seq++ {
		if rec := ch.out.at(seq); !rec.acked && !rec.waiting && t.outlet.MaySend(rec.header.Bits) {
			t.Counters.Resent++
			t.transmit(ch, rec)
		}
	}
	t.last = lastBunch{}
}
