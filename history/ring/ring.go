// Package ring is a buffer of entries indexed by sequence.
//
// It remembers something about each of the last Size sequences: what a packet
// carried, the input of a frame, a saved move, a snapshot. Looking up, inserting
// and removing are one array access each, and nothing is allocated after
// creation. (A B-tree takes about ten times as long for the same window; it pays
// where keys are sparse.)
//
//	      newest-Size+1                  newest
//	           |                           |
//	older: nil |  looked up by seq%Size    | newer: Insert moves newest
//
// Keys are full int64 ids that never wrap (package seqnum expands what was
// truncated on the wire). Insert clears every sequence it skips, so an entry can't
// be mistaken for one a whole round younger, even when nearly all are skipped.
package ring

// Ring holds entries for a window of sequences. Not safe for concurrent use.
//
// Invariant: slot i holds the entry of seqs[i], with seqs[i]%size == i, or none
// when seqs[i] < 0; and newest-size < seqs[i] <= newest for all that are held.
type Ring[T any] struct {
	seqs   []int64
	slots  []T
	mask   int64
	newest int64 // -1: nothing was inserted yet
}

const empty = -1

// New returns a ring for a window of size sequences. It panics unless size is a
// power of two.
func New[T any](size int) *Ring[T] {
	if size <= 0 || size&(size-1) != 0 {
		panic("ring: the size must be a power of two")
	}
	r := &Ring[T]{seqs: make([]int64, size), slots: make([]T, size), mask: int64(size - 1)}
	r.Reset()
	return r
}

// Reset empties the ring and forgets its newest sequence.
func (r *Ring[T]) Reset() {
	r.newest = empty
	for i := range r.seqs {
		r.seqs[i] = empty
	}
	clear(r.slots)
}

// Size is the number of sequences in the window.
func (r *Ring[T]) Size() int { return len(r.slots) }

// Newest is the highest sequence inserted, if there was any.
func (r *Ring[T]) Newest() (int64, bool) { return r.newest, r.newest != empty }

// Insert makes an entry for seq >= 0, zeroed even if there was one, and returns it; nil
// if seq is older than the window. A seq over the newest moves the window and
// clears what it skips. The pointer is valid until the entry is overwritten.
func (r *Ring[T]) Insert(seq int64) *T {
	if seq < 0 || seq <= r.newest-int64(len(r.slots)) {
		return nil
	}
	if seq > r.newest {
		r.advance(seq)
	}
	i := seq & r.mask
	r.seqs[i] = seq
	var zero T
	r.slots[i] = zero
	return &r.slots[i]
}

func (r *Ring[T]) advance(seq int64) {
	if r.newest == empty || seq-r.newest >= int64(len(r.slots)) {
		r.Reset()
	} else {
		for s := r.newest + 1; s < seq; s++ {
			r.Remove(s - int64(len(r.slots)))
		}
	}
	r.newest = seq
}

// Lookup is the entry of seq, or nil.
func (r *Ring[T]) Lookup(seq int64) *T {
	i := seq & r.mask
	if seq < 0 || r.seqs[i] != seq {
		return nil
	}
	return &r.slots[i]
}

// Remove drops the entry of seq, if there is one; the window stays where it is.
func (r *Ring[T]) Remove(seq int64) {
	i := seq & r.mask
	if seq < 0 || r.seqs[i] != seq {
		return
	}
	r.seqs[i] = empty
	var zero T
	r.slots[i] = zero
}
