package channel

import "math/bits"

// Pool lends the buffers in which reliable bunches wait. Connections that one
// goroutine owns may share one. It keeps at most MaxFree bytes of buffers that nobody
// uses. Not safe for concurrent use; the zero Pool is ready.
type Pool struct {
	// MaxFree bounds the unused bytes kept; 0 means 4 MiB, negative keeps none.
	MaxFree int

	free  [classes][][]byte
	bytes int
}

// Buffers have 32, 64, ... 65536 bytes, the largest payload of a bunch.
const (
	minClass = 5
	classes  = 12
)

// Get lends a buffer of n bytes; its contents are undefined.
func (p *Pool) Get(n int) []byte {
	if n == 0 {
		return nil
	}
	c := max(0, bits.Len(uint(n-1))-minClass)
	if c >= classes {
		return make([]byte, n)
	}
	list := p.free[c]
	if len(list) == 0 {
		return make([]byte, n, 1<<(c+minClass))
	}
	b := list[len(list)-1]
	p.free[c] = list[:len(list)-1]
	p.bytes -= cap(b)
	return b[:n]
}

// Put takes a buffer back. Nobody may use it any more.
func (p *Pool) Put(b []byte) {
	limit := p.MaxFree
	if limit == 0 {
		limit = 4 << 20
	}
	c := bits.Len(uint(cap(b))) - 1 - minClass
	if c < 0 || c >= classes || cap(b) != 1<<(c+minClass) || p.bytes+cap(b) > limit {
		return
	}
	p.free[c] = append(p.free[c], b)
	p.bytes += cap(b)
}
