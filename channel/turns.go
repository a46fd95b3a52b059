package channel

// turns is the channels with reliable bunches that were never sent, which go out one of each channel in turn: a line of
// chat doesn't wait behind the file on another channel. A channel's own are the last ones of its OutRec, Channel.fresh of
// them, and keep their order.
//
// Table.refused is of the same type, for channels whose bunches were lost often.
//
// Invariant: a channel is in list[head:] once when it has such bunches; entries of closed channels are stale.
type turns struct {
	list    []*Channel
	head    int32
	stale   int32
	waiting int // bunches
}

// len is the entries, stale ones included.
func (q *turns) len() int { return len(q.list) - int(q.head) }

// push adds the bunch that was put into the channel's OutRec last.
func (q *turns) push(ch *Channel) {
	q.waiting++
	if ch.fresh++; ch.fresh == 1 {
		q.add(ch)
	}
}

func (q *turns) add(ch *Channel) {
	if 2*int(q.head) >= len(q.list) && len(q.list) == cap(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, ch)
}

// first is the channel whose turn it is and its oldest bunch that was never sent; nil when there is none.
func (q *turns) first() (*Channel, *outRec) {
	for int(q.head) < len(q.list) {
		if ch := q.list[q.head]; !ch.closed {
			return ch, ch.out.at(ch.firstFresh())
		}
		q.stale--
		q.drop()
	}
	return nil, nil
}

// firstAccepted is first, but passes over channels that the peer may be refusing, as it would refuse what is new on them too: on a path that
// looks slow for that, they would take the turns of the channel that the peer has room for. If the next mostPassed are all of that kind it is one of them.
func (q *turns) firstAccepted() (*Channel, *outRec) {
	ch, rec := q.first()
	for n := min(q.len(), mostPassed); n > 0 && ch != nil && ch.refused; n-- {
		q.drop()
		q.add(ch)
		ch, rec = q.first()
	}
	return ch, rec
}

const mostPassed = 64

// took ends the turn of the first channel, whose bunch was sent.
func (q *turns) took() {
	ch := q.list[q.head]
	q.waiting--
	ch.fresh--
	q.drop()
	if ch.fresh > 0 {
		q.add(ch)
	}
}

// moveTo puts the first channel, and so its bunches, behind those of another queue.
func (q *turns) moveTo(to *turns) {
	ch := q.list[q.head]
	q.waiting -= int(ch.fresh)
	q.drop()
	to.waiting += int(ch.fresh)
	to.add(ch)
}

// drop forgets the first entry.
func (q *turns) drop() {
	q.list[q.head] = nil
	if q.head++; int(q.head) == len(q.list) {
		q.list, q.head = q.list[:0], 0
		if cap(q.list) > maxIdleBacklog {
			q.list = nil
		}
	}
}

// leave forgets the bunches of a channel that is closed.
func (q *turns) leave(ch *Channel) {
	if ch.fresh > 0 {
		q.waiting -= int(ch.fresh)
		q.stale++
		ch.fresh = 0
	}
}

// compact drops stale entries once they are more than those that aren't.
func (q *turns) compact() {
	if q.stale <= maxStale || int(q.stale) <= q.len()-int(q.stale) {
		return
	}
	kept := q.list[:0]
	for _, ch := range q.list[q.head:] {
		if !ch.closed {
			kept = append(kept, ch)
		}
	}
	clear(q.list[len(kept):])
	q.list, q.head, q.stale = kept, 0, 0
}

// firstFresh is the sequence of the channel's oldest bunch that was never sent.
func (ch *Channel) firstFresh() int64 { return ch.out.next - int64(ch.fresh) }

// pumpTurn sends the bunch whose turn it is, if there is one, and reports whether the connection let it.
func (t *Table) pumpTurn() bool {
	ch, rec := t.fresh.firstAccepted()
	if ch == nil {
		return true
	}
	if !t.mayFollow(ch, rec) {
		ch.needRare().blocked = true
		t.fresh.moveTo(&t.blocked)
		return true
	}
	if !t.mayBegin(ch, rec) {
		ch.inLine = true
		t.fresh.moveTo(&t.line)
		return true
	}
	if !t.outlet.MaySend(rec.header.Bits) {
		return false
	}
	rec.waiting = false
	t.fresh.took()
	t.freshTurn = max(t.freshTurn-rec.header.Bits, 0) - 1
	t.countAhead(ch, peerCost(rec))
	t.transmit(ch, rec)
	return true
}
