package coding

import "math/bits"

// Trailer is what stands behind a packet; see the package's doc. Symbols aliases the datagram.
type Trailer struct {
	// Covers is the packets that each symbol covers.
	Covers Cover
	// Size is the bytes of each symbol.
	Size int
	// Symbols is all symbols, one after the other.
	Symbols []byte
	// Repaired is the packets that were repaired: bit i is that of AckedSeq-i, of the packet's header. MaxRepaired bits at most.
	Repaired uint32
}

const (
	// MaxRepaired is how many packets a trailer tells of, the newest that its packet acks.
	MaxRepaired = 24
	// TrailerBytes is the most that a trailer has besides its symbols.
	TrailerBytes = 6 + MaxRepaired/8
	helloVersion = 3
	// HelloBytes is the size of a Hello.
	HelloBytes = 4
)

// Marked reports whether a datagram has a trailer, or is a hello: no other ends with a zero.
func Marked(p []byte) bool { return len(p) > 0 && p[len(p)-1] == 0 }

// AppendEnd appends the end of a trailer, behind k symbols of so many bytes, 0 to MaxSymbols.
func AppendEnd(p []byte, k int, c Cover, size int, repaired uint32) []byte {
	f := (bits.Len32(repaired) + 7) / 8
	meta := byte(k<<4 | f<<6)
	if k > 0 {
		meta |= byte(c.reach() - 1)
		switch {
		case !c.whole():
			p = append(p, byte(c), byte(c>>8), byte(size>>7|128), byte(size&127|128))
		case size >= 128:
			p = append(p, byte(size>>7), byte(size&127|128))
		default:
			p = append(p, byte(size))
		}
	}
	for ; f > 0; f-- {
		p = append(p, byte(repaired))
		repaired >>= 8
	}
	return append(p, meta, 0)
}

// Split takes the trailer off a marked datagram. ok is false for one that has none that can be.
func Split(p []byte) (packet []byte, t Trailer, ok bool) {
	if len(p) < 3 || p[len(p)-1] != 0 {
		return nil, t, false
	}
	meta := p[len(p)-2]
	p = p[:len(p)-2]
	k, f := int(meta>>4&3), int(meta>>6)
	if k+f == 0 || f > len(p) || k == 0 && meta&15 != 0 {
		return nil, t, false
	}
	for range f {
		t.Repaired = t.Repaired<<8 | uint32(p[len(p)-1])
		p = p[:len(p)-1]
	}
	if f != (bits.Len32(t.Repaired)+7)/8 { // as short as can be
		return nil, Trailer{}, false
	}
	if k > 0 {
		if p, t.Covers, t.Size, ok = takeCovered(p, int(meta&15)+1); !ok || k*t.Size >= len(p) {
			return nil, Trailer{}, false
		}
		p, t.Symbols = p[:len(p)-k*t.Size], p[len(p)-k*t.Size:]
	}
	if len(p) == 0 || p[len(p)-1] == 0 { // what was sent is a packet without a trailer
		return nil, Trailer{}, false
	}
	return p, t, true
}

// takeCovered takes the size of symbols, above 0 and as short as can be, and which packets they cover off the end. The oldest one is reach before them.
func takeCovered(p []byte, reach int) (rest []byte, c Cover, size int, ok bool) {
	c = 1<<reach - 1
	n := len(p)
	if n == 0 {
		return nil, 0, 0, false
	}
	if p[n-1] < 128 {
		return p[:n-1], c, int(p[n-1]), p[n-1] > 0
	}
	if n == 1 || p[n-2] == 0 {
		return nil, 0, 0, false
	}
	size, rest = int(p[n-2]&127)<<7|int(p[n-1]&127), p[:n-2]
	if p[n-2] < 128 {
		return rest, c, size, true
	}
	if n < 4 {
		return nil, 0, 0, false
	}
	c = Cover(p[n-4]) | Cover(p[n-3])<<8
	return rest[:n-4], c, size, size > 0 && c.reach() == reach && !c.whole()
}

// AppendHello appends a datagram that says that its sender understands coding, and whether it heard so of the peer.
func AppendHello(p []byte, heard bool) []byte {
	h := byte(0)
	if heard {
		h = 1
	}
	return append(p, helloVersion, h, 0, 0)
}

// Hello reads a hello.
func Hello(p []byte) (heard, ok bool) {
	if len(p) != HelloBytes || p[0] != helloVersion || p[1] > 1 || p[2] != 0 || p[3] != 0 {
		return false, false
	}
	return p[1] == 1, true
}
