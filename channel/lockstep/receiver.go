package lockstep

import "encoding/binary"

// receiver puts the stream's records together.
//
// Invariant: the first ready records of buf[begin:scan] are whole.
type receiver struct {
	buf   []byte // its capacity is the bound
	begin int    // of the record to be executed next
	scan  int    // records before are counted in ready
	ready int
	limit int   // bytes of a record
	next  int64 // position in the stream of the byte that comes next
	size  int   // of the record given out, its length field included; 0: none is
	bad   bool  // a record is over the limit
}

// add takes as much of p as there is room for. A record given out stays where it is.
func (r *receiver) add(p []byte) (n int) {
	if len(p) > cap(r.buf)-len(r.buf) && r.begin > 0 && r.size == 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.begin:])]
		r.scan -= r.begin
		r.begin = 0
	}
	n = min(len(p), cap(r.buf)-len(r.buf))
	r.buf = append(r.buf, p[:n]...)
	r.next += int64(n)
	r.count()
	return n
}

// count finds records that became whole.
func (r *receiver) count() {
	for r.scan < len(r.buf) {
		size, n := binary.Uvarint(r.buf[r.scan:])
		switch {
		case n < 0 || n > 0 && (size == 0 || size > uint64(r.limit)),
			n == 0 && len(r.buf)-r.scan >= binary.MaxVarintLen32:
			r.bad = true
			return
		case n == 0 || int(size) > len(r.buf)-r.scan-n:
			return
		}
		r.scan += n + int(size)
		r.ready++
	}
}

// record is the oldest whole one; valid until drop.
func (r *receiver) record() []byte {
	size, n := binary.Uvarint(r.buf[r.begin:])
	r.size = n + int(size)
	return r.buf[r.begin+n : r.begin+r.size]
}

// drop forgets the oldest record.
func (r *receiver) drop() {
	r.begin, r.size = r.begin+r.size, 0
	r.ready--
	if r.begin == len(r.buf) {
		r.buf, r.begin, r.scan = r.buf[:0], 0, 0
	}
}

// reset forgets everything.
func (r *receiver) reset() {
	*r = receiver{buf: r.buf[:0], limit: r.limit}
}
