package channel

import (
	"math/bits"
	"unsafe"
)

// Pool lends the buffers in which reliable bunches wait, and the rings that hold them. Connections that one
// goroutine owns may share one. It keeps at most MaxFree bytes that nobody uses. Not safe for
// concurrent use; the zero Pool is ready.
type Pool struct {
	// MaxFree bounds the unused bytes kept; 0 means 12 MiB, what a full window takes, negative keeps none.
	MaxFree int

	free   [classes][][]byte
	recs   *freeRecs // nil until the first one comes back
	unused int       // bytes of all of them
}

// freeRecs is what holds reliable bunches.
type freeRecs struct {
	rings [ringClasses][][]outRec
	lists [ringClasses][][]*early
	early []*early
}

// unusedRecs is the free ones, made when there are none yet.
func (p *Pool) unusedRecs() *freeRecs {
	if p.recs == nil {
		p.recs = new(freeRecs)
	}
	return p.recs
}

// Buffers have 32, 64, ... 65536 bytes, the largest payload of a bunch.
const (
	minClass = 5
	classes  = 12
)

// ringClasses is for rings of 1 to largestRing entries, the largest ReliableBuffer.
const (
	ringClasses = 13
	largestRing = 1 << (ringClasses - 1)
)

// bufferSize is how many bytes Get allocates for n.
func bufferSize(n int) int {
	if n == 0 {
		return 0
	}
	c := max(0, bits.Len(uint(n-1))-minClass)
	if c >= classes {
		return n
	}
	return 1 << (c + minClass)
}

// keep counts n bytes as unused, if there is room for them.
func (p *Pool) keep(n int) bool {
	limit := p.MaxFree
	if limit == 0 {
		limit = 12 << 20
	}
	if p.unused+n > limit {
		return false
	}
	p.unused += n
	return true
}

// Get lends a buffer of n bytes; its contents are undefined.
func (p *Pool) Get(n int) []byte {
	if n == 0 {
		return nil
	}
	c := max(0, bits.Len(uint(n-1))-minClass)
	if c >= classes {
		return make([]byte, n)
	}
	if b, ok := pop(&p.free[c]); ok {
		p.unused -= cap(b)
		return b[:n]
	}
	return make([]byte, n, 1<<(c+minClass))
}

// Put takes a buffer back. Nobody may use it any more.
func (p *Pool) Put(b []byte) {
	c := bits.Len(uint(cap(b))) - 1 - minClass
	if c < 0 || c >= classes || cap(b) != 1<<(c+minClass) || !p.keep(cap(b)) {
		return
	}
	p.free[c] = append(p.free[c], b)
}

const (
	outRecSize = int(unsafe.Sizeof(outRec{}))
	earlySize  = int(unsafe.Sizeof(early{}))
	wordSize   = int(unsafe.Sizeof(uintptr(0)))
)

// getRing lends a zeroed ring of n entries, a power of two.
func (p *Pool) getRing(n int) []outRec {
	if p.recs != nil {
		if r, ok := pop(&p.recs.rings[bits.Len(uint(n))-1]); ok {
			p.unused -= n * outRecSize
			return r
		}
	}
	return make([]outRec, n)
}

// putRing takes a ring back, whose entries are zero.
func (p *Pool) putRing(r []outRec) {
	if p.keep(len(r) * outRecSize) {
		c := bits.Len(uint(len(r))) - 1
		list := &p.unusedRecs().rings[c]
		*list = append(*list, r)
	}
}

// getList lends an empty list with room for n entries at least.
func (p *Pool) getList(n int) []*early {
	n = max(n, 4)
	c := bits.Len(uint(n - 1))
	if p.recs != nil {
		if l, ok := pop(&p.recs.lists[c]); ok {
			p.unused -= cap(l) * wordSize
			return l
		}
	}
	return make([]*early, 0, 1<<c)
}

// putList takes a list back and forgets what it holds.
func (p *Pool) putList(l []*early) {
	if cap(l) == 0 || !p.keep(cap(l)*wordSize) {
		return
	}
	clear(l)
	c := bits.Len(uint(cap(l) - 1))
	list := &p.unusedRecs().lists[c]
	*list = append(*list, l[:0])
}

// getEarly lends a place for an early bunch.
func (p *Pool) getEarly() *early {
	if p.recs != nil {
		if e, ok := pop(&p.recs.early); ok {
			p.unused -= earlySize
			return e
		}
	}
	return new(early)
}

// putEarly takes one back.
func (p *Pool) putEarly(e *early) {
	*e = early{}
	if p.keep(earlySize) {
		r := p.unusedRecs()
		r.early = append(r.early, e)
	}
}

// pop takes the last of a list.
func pop[T any](list *[]T) (last T, ok bool) {
	n := len(*list) - 1
	if n < 0 {
		return last, false
	}
	last, ok = (*list)[n], true
	var zero T
	(*list)[n] = zero
	*list = (*list)[:n]
	return last, ok
}
