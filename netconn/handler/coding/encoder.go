package coding

import "github.com/bunchnet/bunchnet/history/seqnum"

const (
	// MaxWindow is the most packets that a symbol covers.
	MaxWindow = 16
	// MaxSymbols is the most symbols in a packet.
	MaxSymbols = 3
	// enough is how many symbols cover a packet before it may be left out, with those before it, for being a quarter larger than the
	// packets behind it: each further symbol would be as large.
	enough = 4
)

// coefficients draws those of a symbol; the newest packet's is 1, and those that are drawn are of the packets before it, the newer
// ones first. See the package's doc.
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

// buffer is a content, padded with zeros to whole words. It grows and is never given back.
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
		grown := make([]byte, size, bufferBytes(size))
		copy(grown, b.data)
		b.data = grown
	} else {
		b.data = b.data[:size]
	}
	b.n = n
}

// Encoder keeps the last packets sent and makes symbols of them. The zero value is ready.
//
// Invariant: packets first..next-1 are kept, MaxWindow at most, that of id at id modulo MaxWindow.
type Encoder struct {
	packets     [MaxWindow]buffer
	covered     [MaxWindow]uint8 // symbols that cover each of them
	minor       [MaxWindow]bool
	first, next int64
	sum         buffer
}

// Add keeps the content of a packet, which is copied. Ids rise; behind a gap the packets before it aren't covered any more. A minor one, such as
// an ack, is covered along with the others, but doesn't count against a window.
func (e *Encoder) Add(id int64, content []byte, minor bool) {
	if id != e.next {
		e.first = id
	}
	e.packets[id&(MaxWindow-1)].set(content)
	e.covered[id&(MaxWindow-1)] = 0
	e.minor[id&(MaxWindow-1)] = minor
	e.next = id + 1
	e.first = max(e.first, e.next-MaxWindow)
}

// Forget has no packet before id covered any more: their fate is known, or they were sent again with another content.
func (e *Encoder) Forget(id int64) { e.first = max(e.first, id) }

// Covers is how many packets a symbol in packet carrier covers, and its size. There are window ones at most that aren't minor, and fewer where a
// packet much larger than the ones behind it has been covered often enough; 0 when there are none.
func (e *Encoder) Covers(carrier int64, window int) (n, size int) {
	if carrier != e.next {
		return 0, 0
	}
	most := max(0, int(min(e.next-e.first, MaxWindow)))
	for n < most {
		at := (carrier - int64(n) - 1) & (MaxWindow - 1)
		if !e.minor[at] {
			if window == 0 {
				break
			}
			window--
		}
		if p := &e.packets[at]; p.n > size {
			if e.covered[at] >= enough && n > 0 && p.n > size+size/4 {
				break
			}
			size = p.n
		}
		n++
	}
	return n, size
}

// AppendSymbol appends symbol k of packet carrier, over the n packets before it, to dst. n and size are those of Covers.
func (e *Encoder) AppendSymbol(dst []byte, carrier int64, k, n, size int) []byte {
	newest := &e.packets[(carrier-1)&(MaxWindow-1)]
	e.sum.resize(size)
	clear(e.sum.data[copy(e.sum.data, newest.data):])
	c := newCoefficients(carrier, k)
	for i := 2; i <= n; i++ {
		addProduct(e.sum.data, e.packets[(carrier-int64(i))&(MaxWindow-1)].data, c.next())
	}
	for i := 1; i <= n; i++ {
		e.covered[(carrier-int64(i))&(MaxWindow-1)]++
	}
	return append(dst, e.sum.data[:size]...)
}
