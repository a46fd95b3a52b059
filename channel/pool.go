package channel

import (
	"math/bits"
	"slices"
	"time"
	"unsafe"
)

// Pool lends the buffers and rings that hold reliable bunches. Connections of one goroutine may share a Pool. Besides
// what is lent, it keeps at most MaxFree unused bytes; it gives most of what wasn't needed for 15 to 30 seconds back to
// the garbage collector. Not safe for concurrent use. The zero Pool is ready to use.
type Pool struct {
	// MaxFree bounds the unused bytes kept, bookkeeping included. 0 means 12 MiB, the need of a full window; negative
	// keeps none.
	MaxFree int

	free    [classes]shelf[[]byte]
	recs    *freeRecs // nil until the first one comes back
	unused  int       // bytes of all unused buffers
	trimmed time.Duration
}

// freeRecs is the unused memory for reliable bunches.
type freeRecs struct {
	rings [ringClasses]shelf[[]outRec]
	early shelf[*early]
	rare  shelf[*rare]
}

// shelf is a free list. The entries at its beginning are those unused for the longest time.
type shelf[T any] struct {
	items []T
	least int // its smallest length since the last trim: so many weren't needed
}

const (
	trimPeriod = 15 * time.Second
	keptUnused = 4 // of each kind, needed or not
)

// trim drops the entries that weren't needed since the last time, and returns their number.
func (s *shelf[T]) trim() int {
	n := max(0, min(s.least, len(s.items)-keptUnused))
	if n > 0 {
		s.items = slices.Clone(s.items[n:])
	}
	s.least = len(s.items)
	return n
}

// tick drops what wasn't needed for some time. It returns when it has to be called again.
func (p *Pool) tick(now time.Duration) (next time.Duration) {
	if since := now - p.trimmed; since >= 0 && since < trimPeriod {
		return p.trimmed + trimPeriod
	}
	p.trimmed = now
	for i := range p.free {
		p.unused -= p.free[i].trim() * (1<<(minClass+i) + freeCost)
	}
	if r := p.recs; r != nil {
		for i := range ringClasses {
			p.unused -= r.rings[i].trim() * (outRecSize<<i + freeCost)
		}
		p.unused -= r.early.trim()*(earlySize+freeCost) + r.rare.trim()*(rareSize+freeCost)
	}
	return now + trimPeriod
}

// unusedRecs is the free lists, made on first use.
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
	ringClasses = 14
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

// maxFree is the default of Pool.MaxFree.
const maxFree = 12 << 20

// freeCost is what a free list needs for an entry in the worst case: it grows by half.
const freeCost = 2 * int(unsafe.Sizeof([]byte(nil)))

// take stops counting n bytes as unused.
func (p *Pool) take(n int) { p.unused -= n + freeCost }

// forget drops everything unused.
func (p *Pool) forget() { *p = Pool{MaxFree: p.MaxFree, trimmed: p.trimmed} }

// keep counts n bytes as unused, if MaxFree allows that.
func (p *Pool) keep(n int) bool {
	most := p.MaxFree
	if most == 0 {
		most = maxFree
	}
	if n += freeCost; p.unused+n > most {
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
	if b, ok := p.free[c].pop(); ok {
		p.take(cap(b))
		return b[:n]
	}
	return make([]byte, n, 1<<(c+minClass))
}

// Put takes a buffer back. The caller may not use it any more.
func (p *Pool) Put(b []byte) {
	c := bits.Len(uint(cap(b))) - 1 - minClass
	if c < 0 || c >= classes || cap(b) != 1<<(c+minClass) || !p.keep(cap(b)) {
		return
	}
	p.free[c].push(b)
}

const (
	outRecSize = int(unsafe.Sizeof(outRec{}))
	earlySize  = int(unsafe.Sizeof(early{}))
	rareSize   = int(unsafe.Sizeof(rare{}))
)

// getRing lends a zeroed ring of n entries, a power of two.
func (p *Pool) getRing(n int) []outRec {
	if p.recs != nil {
		if r, ok := p.recs.rings[bits.Len(uint(n))-1].pop(); ok {
			p.take(n * outRecSize)
			return r
		}
	}
	return make([]outRec, n)
}

// putRing takes back a ring whose entries are zero.
func (p *Pool) putRing(r []outRec) {
	if p.keep(len(r) * outRecSize) {
		c := bits.Len(uint(len(r))) - 1
		p.unusedRecs().rings[c].push(r)
	}
}

// getEarly lends an early.
func (p *Pool) getEarly() *early {
	if p.recs != nil {
		if e, ok := p.recs.early.pop(); ok {
			p.take(earlySize)
			return e
		}
	}
	return new(early)
}

// putEarly takes an early back.
func (p *Pool) putEarly(e *early) {
	*e = early{}
	if p.keep(earlySize) {
		p.unusedRecs().early.push(e)
	}
}

// getRare lends a zero rare.
func (p *Pool) getRare() *rare {
	if p.recs != nil {
		if r, ok := p.recs.rare.pop(); ok {
			p.take(rareSize)
			return r
		}
	}
	return new(rare)
}

// putRare takes a rare back.
func (p *Pool) putRare(r *rare) {
	*r = rare{}
	if p.keep(rareSize) {
		p.unusedRecs().rare.push(r)
	}
}

func (s *shelf[T]) push(t T) { s.items = append(s.items, t) }

// pop takes the last one.
func (s *shelf[T]) pop() (last T, ok bool) {
	n := len(s.items) - 1
	if n < 0 {
		return last, false
	}
	var zero T
	last, s.items[n] = s.items[n], zero
	s.items, s.least = s.items[:n], min(s.least, n)
	return last, true
}
