package channel

import "github.com/bunchnet/bunchnet/bunch"

// early is a reliable bunch that waits for its turn.
type early struct {
	in    bunch.In
	data  []byte
	below [2]*early
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

// earlyBunches is InRec: the early bunches of a channel, by their sequence. It is a digital search tree: a bunch stands below others whose
// sequences have the same lowest bits. All are within Config.ReliableBuffer of each other, which is largestRing at most, so that none has more than
// 13 above it, in whatever order they come.
type earlyBunches struct {
	root   *early
	n      int
	bytes  int   // that they count
	oldest int64 // the lowest sequence since there were none
	newest int64 // the highest, if there is any
}

// missing is what the bunches count that are missing between those that are there and one that comes with a sequence, if they are as large as these, and it, on average. Those
// before all of them don't count, as each comes in its turn, from next on; nor do any where the sequence is in between, as they were counted for the newest.
func (q *earlyBunches) missing(next, seq int64, cost int) int {
	if q.n == 0 || seq < q.newest {
		return 0
	}
	return (int(seq-max(q.oldest, next+1)) - q.n) * ((q.bytes + cost) / (q.n + 1))
}

// place is where the bunch with a sequence is, or where it would be.
func (q *earlyBunches) place(seq int64) **early {
	at := &q.root
	for bits := seq; *at != nil && (*at).in.ChSequence != seq; bits >>= 1 {
		at = &(*at).below[bits&1]
	}
	return at
}

// has reports whether there is a bunch with a sequence.
func (q *earlyBunches) has(seq int64) bool { return *q.place(seq) != nil }

// add keeps r, unless there is one with its sequence.
func (q *earlyBunches) add(r *early) {
	at := q.place(r.in.ChSequence)
	if *at != nil {
		return
	}
	*at = r
	q.bytes += r.cost()
	if q.n++; q.n == 1 {
		q.oldest, q.newest = r.in.ChSequence, r.in.ChSequence
	}
	q.oldest, q.newest = min(q.oldest, r.in.ChSequence), max(q.newest, r.in.ChSequence)
}

// take takes the bunch with a sequence out; nil when there is none. One from below, which has none below itself, has its place then.
func (q *earlyBunches) take(seq int64) *early {
	at := q.place(seq)
	r := *at
	if r == nil {
		return nil
	}
	leaf := at
	for {
		l := *leaf
		if l.below[0] != nil {
			leaf = &l.below[0]
		} else if l.below[1] != nil {
			leaf = &l.below[1]
		} else {
			break
		}
	}
	last := *leaf
	*leaf = nil
	if last != r {
		last.below = r.below
		*at = last
	}
	r.below = [2]*early{}
	q.n--
	q.bytes -= r.cost()
	return r
}
