package stream

// fifo is a ring of bytes that grows up to a limit.
//
// Invariant: 0 <= n <= len(b) <= limit.
type fifo struct {
	b       []byte
	head, n int
	limit   int
}

func (f *fifo) free() int { return f.limit - f.n }

// tail is room behind the last byte, at most want and in one piece; commit makes it part of the ring.
// It is empty only when the ring is at its limit.
func (f *fifo) tail(want int) []byte {
	want = min(want, f.free())
	if f.n+want > len(f.b) {
		f.grow(f.n + want)
	}
	if len(f.b) == 0 {
		return nil
	}
	at := (f.head + f.n) % len(f.b)
	return f.b[at:min(at+want, len(f.b))]
}

func (f *fifo) commit(n int) { f.n += n }

func (f *fifo) grow(need int) {
	size := max(1024, 2*len(f.b))
	for size < need {
		size *= 2
	}
	b := make([]byte, min(size, f.limit))
	f.peek(b)
	f.b, f.head = b, 0
}

// write takes as much of p as there is room for.
func (f *fifo) write(p []byte) int {
	total := 0
	for len(p) > 0 && f.free() > 0 {
		n := copy(f.tail(len(p)), p)
		f.commit(n)
		p, total = p[n:], total+n
	}
	return total
}

// peek copies the first bytes without taking them.
func (f *fifo) peek(p []byte) int {
	n := min(len(p), f.n)
	if n == 0 {
		return 0
	}
	first := copy(p[:n], f.b[f.head:])
	copy(p[first:n], f.b)
	return n
}

func (f *fifo) drop(n int) {
	f.n -= n
	if f.n == 0 {
		f.head = 0
		return
	}
	f.head = (f.head + n) % len(f.b)
}

// read takes the first bytes.
func (f *fifo) read(p []byte) int {
	n := f.peek(p)
	f.drop(n)
	return n
}

// release empties the ring and gives its memory back.
func (f *fifo) release() { *f = fifo{limit: f.limit} }
