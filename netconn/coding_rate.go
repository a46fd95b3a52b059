package netconn

import (
	"time"
)

// How many symbols packets get, and how many packets each covers.

// pathQueue tells from round trip times whether the path's queue has grown: the least of the last eight, beside the least of 10 to 20 s. While more is lost
// than before it grew, that is the least of one to two minutes: a queue that stands and overflows isn't a longer path.
type pathQueue struct {
	base, next, since time.Duration
	recent            [8]time.Duration
	n                 int
	loss              float64 // before the queue grew
}

const (
	queueLife  = 10 * time.Second
	queueStays = time.Minute
	queueGrown = 25 * time.Millisecond // and an eighth of the least; ticks at both ends move it by less
)

func (q *pathQueue) sample(now, rtt time.Duration, loss float64) {
	q.recent[q.n%len(q.recent)] = rtt
	q.n++
	life := queueLife
	if !q.grown() {
		q.loss = loss
	} else if loss > 2*q.loss+0.03 {
		life = queueStays
	}
	if q.base == 0 || now-q.since > life {
		if q.next == 0 {
			q.next = rtt
		}
		q.base, q.next, q.since = q.next, rtt, now
	}
	q.base, q.next = min(q.base, rtt), min(q.next, rtt)
}

func (q *pathQueue) grown() bool {
	if q.n < len(q.recent) {
		return false
	}
	least := q.recent[0]
	for _, rtt := range q.recent {
		least = min(least, rtt)
	}
	return least-q.base > queueGrown+q.base/8
}

// repairs is how many symbols packet id gets if it has bunches. Loss that comes with a growing queue is congestion, to which
// symbols would only add; so is loss that comes with the symbols.
func (c *Conn) repairs(id int64) float64 {
	k := c.coder
	if k.queue.grown() || k.blame.leaveOut(id) {
		return 0
	}
	if !k.cfg.Adaptive {
		return k.cfg.Repairs
	}
	loss, _ := c.rates.expect()
	want := 0.0
	switch {
	case loss < 0.002:
	case loss < 0.02:
		want = 0.5
	case loss < 0.07:
		want = 1
	case loss < 0.25:
		want = 2
	default:
		want = 3
	}
	return min(want, k.cfg.Repairs)
}

// Packets that a symbol covers: more find more losses that are apart, fewer are sooner done with several in a row.
const (
	windowAlone  = 6
	windowBursts = 4
)

func (c *Conn) codingWindow() int {
	if loss, again := c.rates.expect(); again > loss {
		return windowBursts
	}
	return windowAlone
}
