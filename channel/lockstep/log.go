package lockstep

// turnLog holds the newest turns' records, each led by its length, as one string of
// bytes that peers read from any turn on. Offsets are absolute and never wrap.
//
// Invariant: end-start <= len(buf), next-first <= len(index).
type turnLog struct {
	buf         []byte
	start, end  int64
	index       []turnStart
	first, next int64 // turns held: [first, next)
}

// turnStart is where a turn's record is, and how things stood before it.
type turnStart struct {
	offset int64
	active uint64
	delay  int
}

func newTurnLog(bytes, turns int) turnLog {
	return turnLog{buf: make([]byte, bytes), index: make([]turnStart, turns)}
}

// append adds the next turn; at what stood before it is known by the caller.
func (l *turnLog) append(rec []byte, before turnStart) {
	for l.next-l.first == int64(len(l.index)) || l.end+int64(len(rec))-l.start > int64(len(l.buf)) {
		l.first++
		l.start = l.offset(l.first)
	}
	before.offset = l.end
	l.index[l.next%int64(len(l.index))] = before
	l.next++
	at := l.end % int64(len(l.buf))
	n := copy(l.buf[at:], rec)
	copy(l.buf, rec[n:])
	l.end += int64(len(rec))
}

// offset is where turn begins; first <= turn <= next.
func (l *turnLog) offset(turn int64) int64 {
	if turn == l.next {
		return l.end
	}
	return l.index[turn%int64(len(l.index))].offset
}

// holds reports whether a reader can begin at turn.
func (l *turnLog) holds(turn int64) bool { return l.first <= turn && turn <= l.next }

// appendRange appends the bytes of [from, to); start <= from <= to <= end.
func (l *turnLog) appendRange(dst []byte, from, to int64) []byte {
	size := int64(len(l.buf))
	for from < to {
		at := from % size
		n := min(to-from, size-at)
		dst = append(dst, l.buf[at:at+n]...)
		from += n
	}
	return dst
}
