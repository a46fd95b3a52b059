package channel

import (
	"slices"

	"github.com/bunchnet/bunchnet/bunch"
)

// early is a reliable bunch that waits for its turn.
type early struct {
	in   bunch.In
	data []byte
}

// cost is the bytes that it counts against MaxMemory.
func (r *early) cost() int { return earlyBytes(r.in.Partial, cap(r.data)) }

// earlyBytes is the bytes that an early bunch of n bytes counts. A part counts what it will when it is joined.
func earlyBytes(part bool, n int) int {
	if part {
		n *= 2
	}
	return earlyCost + n
}

// earlyBunches is InRec: the early bunches of a channel, in order. Its size follows its content.
//
// Invariant: recs[head:] are sorted by ChSequence, and nothing is before head.
type earlyBunches struct {
	recs []*early
	head int
}

func (q *earlyBunches) len() int { return len(q.recs) - q.head }

// find is the index of seq, or the index at which to insert it.
func (q *earlyBunches) find(seq int64) (i int, held bool) {
	i, held = slices.BinarySearchFunc(q.recs[q.head:], seq, func(r *early, seq int64) int { return int(r.in.ChSequence - seq) })
	return q.head + i, held
}

// insert keeps r at index i.
func (q *earlyBunches) insert(i int, r *early, p *Pool) {
	if q.head > 0 && len(q.recs) == cap(q.recs) {
		n := copy(q.recs, q.recs[q.head:])
		clear(q.recs[n:])
		i -= q.head
		q.recs, q.head = q.recs[:n], 0
	}
	if len(q.recs) == cap(q.recs) {
		grown := append(p.getList(2*len(q.recs)), q.recs...)
		p.putList(q.recs)
		q.recs = grown
	}
	q.recs = slices.Insert(q.recs, i, r)
}

// next is the first bunch if its sequence is seq, else nil.
func (q *earlyBunches) next(seq int64) *early {
	if q.len() == 0 || q.recs[q.head].in.ChSequence != seq {
		return nil
	}
	return q.recs[q.head]
}

// pop forgets the first bunch.
func (q *earlyBunches) pop(p *Pool) {
	q.recs[q.head] = nil
	if q.head++; q.head == len(q.recs) {
		p.putList(q.recs)
		*q = earlyBunches{}
	}
}
