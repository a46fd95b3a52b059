package packetnotify

import "cmp"

const (
	// defaultRecords is what the recorded peer has.
	defaultRecords = 255
	// maxRecords is half the sequence space, where ids stop being distinct.
	maxRecords = 8191
)

// ackRecords is the newest packet we had acked when we sent each of ours whose fate
// isn't known: that of id at slot id modulo the size. It grows up to limit, and shrinks when it is told to; with more
// in flight the oldest are forgotten.
//
// Invariant: 0 <= next-first <= min(limit, len(acks)), and first..next-1 are held.
type ackRecords struct {
	acks        []int64 // a power of two of them
	first, next int64
	limit       int // 0: defaultRecords
}

func (r *ackRecords) slot(id int64) *int64 { return &r.acks[id&int64(len(r.acks)-1)] }

// push notes ack for id; ids come one after the other.
func (r *ackRecords) push(id, ack int64) {
	if r.first == r.next {
		r.first, r.next = id, id
	}
	if int(r.next-r.first) == cmp.Or(r.limit, defaultRecords) {
		r.first++
	}
	if int(r.next-r.first) == len(r.acks) {
		r.resize(max(8, 2*len(r.acks)))
	}
	*r.slot(id) = ack
	r.next = id + 1
}

func (r *ackRecords) resize(size int) {
	other := *r
	other.acks = make([]int64, size)
	for id := r.first; id < r.next; id++ {
		*other.slot(id) = *r.slot(id)
	}
	*r = other
}

// pop forgets all up to id and returns what was acked with id, if none from the
// oldest in flight on was forgotten before.
func (r *ackRecords) pop(oldest, id int64) (ack int64, ok bool) {
	if oldest >= r.first && id < r.next {
		ack, ok = *r.slot(id), true
	}
	r.first = min(max(r.first, id+1), r.next)
	return ack, ok
}
