package coding

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/history/seqnum"
)

const (
	// MaxWindow is the most packets that a symbol covers.
	MaxWindow = 16
	// MaxSymbols is the most symbols in a packet.
	MaxSymbols = 3
	// enough is how many packets have symbols that cover a packet before it may be left out, with those before it, for being a quarter larger than the
	// packets behind it: each further symbol would be as large.
	enough = 3
)

// Cover is the packets that a symbol covers: bit i-1 is that of the packet i before the symbol's. 0 is none.
type Cover uint16

// reach is how far before the symbol's packet the oldest one is.
func (c Cover) reach() int { return bits.Len16(uint16(c)) }

// has reports whether the packet i before the symbol's is covered.
func (c Cover) has(i int) bool { return c>>(i-1)&1 == 1 }

// whole reports whether all packets back to the oldest one are covered.
func (c Cover) whole() bool { return c&(c+1) == 0 }

// coefficients draws those of a symbol; the newest packet's is 1, and those that are drawn are of the packets before it, the newer
// ones first, covered or not. See the package's doc.
type coefficients uint32

func newCoefficients(carrier int64, k int) coefficients {
	return coefficients((uint32(seqnum.Packet.Truncate(carrier))<<2 + uint32(k) + 1) * 0x9e3779b1)
}

func (c *coefficients) next() uint8 {
	x := uint32(*c)
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	*c = coefficients(x)
	return uint8(1 + (x>>16)*255>>16)
}

// buffer is a content, padded with zeros. It grows and is never given back.
type buffer struct {
	data []byte
	n    int // bytes of the content
}

// set copies a content.
func (b *buffer) set(p []byte) {
	b.resize(len(p))
	copy(b.data, p)
	clear(b.data[len(p):])
}

// resize makes the content n bytes long; what it had is kept as far as it fits, and what is new is undefined.
func (b *buffer) resize(n int) {
	if size := padded(n); size > cap(b.data) {
		grown := make([]byte, size)
		copy(grown, b.data)
		b.data = grown
	} else {
		b.data = b.data[:size]
	}
	b.n = n
}

// Encoder keeps the last packets sent and makes symbols of them. The zero value is ready.
//
// Invariant: packets first..next-1 are kept, at most MaxWindow. Packet id is at index id modulo MaxWindow.
type Encoder struct {
	packets     [MaxWindow]buffer
	covered     [MaxWindow]uint8 // packets with symbols that cover each of them
	minor       [MaxWindow]bool
	first, next int64
	sum         buffer
}

// Add keeps the content of a packet, which is copied. Ids rise; behind a gap the packets before it aren't covered any more. A minor one, such as
// an ack, isn't covered: a lost one would only be one more that is missing.
func (e *Encoder) Add(id int64, content []byte, minor bool) {
	if id != e.next {
		e.first = id
	}
	at := id & (MaxWindow - 1)
	if !minor {
		e.packets[at].set(content)
	}
	e.covered[at], e.minor[at] = 0, minor
	e.next = id + 1
	e.first = max(e.first, e.next-MaxWindow)
}

// Forget has no packet before id covered any more: their fate is known, or they were sent again with another content.
func (e *Encoder) Forget(id int64) { e.first = max(e.first, id) }

// Covers is the packets that a symbol in packet carrier covers, and its size. There are window ones at most, and fewer where a
// packet much larger than the ones behind it has been covered often enough.
func (e *Encoder) Covers(carrier int64, window int) (c Cover, size int) {
	if carrier != e.next {
		return 0, 0
	}
	most := max(0, int(min(e.next-e.first, MaxWindow)))
	for i := 1; i <= most && window > 0; i++ {
		at := (carrier - int64(i)) & (MaxWindow - 1)
		if e.minor[at] {
			continue
		}
		if p := &e.packets[at]; p.n > size {
			if e.covered[at] >= enough && c != 0 && p.n > size+size/4 {
				break
			}
			size = p.n
		}
		c |= 1 << (i - 1)
		window--
	}
	return c, size
}

// AppendSymbol appends symbol k of packet carrier, over some packets before it, to dst. c and size are those of Covers.
func (e *Encoder) AppendSymbol(dst []byte, carrier int64, k int, c Cover, size int) []byte {
	e.sum.resize(size)
	sum, n := e.sum.data, 0
	if c.has(1) {
		n = copy(sum, e.packets[(carrier-1)&(MaxWindow-1)].data)
	}
	clear(sum[n:])
	draw := newCoefficients(carrier, k)
	for id, older := carrier-2, c>>1; older != 0; id, older = id-1, older>>1 {
		if by := draw.next(); older.has(1) {
			addProduct(sum, e.packets[id&(MaxWindow-1)].data, by)
		}
	}
	if k == 0 {
		for id := carrier - 1; c != 0; id, c = id-1, c>>1 {
			e.covered[id&(MaxWindow-1)] += uint8(c & 1)
		}
	}
	return append(dst, sum[:size]...)
}
