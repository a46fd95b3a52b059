package bitio

import (
	"encoding/binary"
	"errors"
	"math"
)

var (
	// ErrShort is a Reader's sticky error: more bits were asked for than there are.
	ErrShort = errors.New("bitio: read past the end")
	// ErrFormat is a Reader's sticky error for bits that no Writer makes.
	ErrFormat = errors.New("bitio: malformed value")
)

// Reader takes bits from a caller's buffer. The zero Reader is at the end of an
// empty one. Copying a Reader copies its position. Not safe for concurrent use.
//
// Invariant: 0 <= pos <= limit <= 8*len(buf), but limit is -1 after an error.
type Reader struct {
	buf   []byte
	pos   int
	limit int
	err   error
}

// NewReader returns a Reader of the first nbits bits of buf, at most all.
func NewReader(buf []byte, nbits int) *Reader {
	r := new(Reader)
	r.Reset(buf, nbits)
	return r
}

// Reset starts anew on the first nbits bits of buf, at most all.
func (r *Reader) Reset(buf []byte, nbits int) {
	*r = Reader{buf: buf, limit: max(0, min(nbits, len(buf)*8))}
}

// Pos is the number of bits read.
func (r *Reader) Pos() int { return r.pos }

// Remaining is the number of bits left; 0 after an error.
func (r *Reader) Remaining() int { return max(0, r.limit-r.pos) }

// Err is the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Fail makes err the sticky error unless there is one already; for decoders
// that find a value they can't accept.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err, r.limit = err, -1
	}
}

// ReadBits reads n bits, the first becoming the lowest. It is ErrShort unless
// 0 <= n <= 64.
func (r *Reader) ReadBits(n int) uint64 {
	if uint(n) > 64 || n > r.limit-r.pos {
		r.Fail(ErrShort)
		return 0
	}
	i, s := uint(r.pos)>>3, uint(r.pos)&7
	r.pos += n
	if i+9 <= uint(len(r.buf)) {
		b := r.buf[i : i+9 : i+9]
		v := binary.LittleEndian.Uint64(b) >> s
		if s+uint(n) > 64 {
			v |= uint64(b[8]) << (64 - s)
		}
		return v & (1<<uint(n) - 1)
	}
	return r.readTail(n, i, s)
}

// readTail is ReadBits for the last nine bytes of a buffer.
func (r *Reader) readTail(n int, i, s uint) (v uint64) {
	if last := len(r.buf) - 8; last >= 0 {
		return binary.LittleEndian.Uint64(r.buf[last:]) >> (8*(i-uint(last)) + s) & (1<<uint(n) - 1)
	}
	for got := 0; got < n; i, s = i+1, 0 {
		v |= uint64(r.buf[i]>>s) << uint(got)
		got += int(8 - s)
	}
	return v & (1<<uint(n) - 1)
}

// ReadBool reads one bit.
func (r *Reader) ReadBool() bool { return r.ReadBits(1) != 0 }

// ReadUint8 reads 8 bits.
func (r *Reader) ReadUint8() uint8 { return uint8(r.ReadBits(8)) }

// ReadUint16 reads 16 bits.
func (r *Reader) ReadUint16() uint16 { return uint16(r.ReadBits(16)) }

// ReadUint32 reads 32 bits.
func (r *Reader) ReadUint32() uint32 { return uint32(r.ReadBits(32)) }

// ReadUint64 reads 64 bits.
func (r *Reader) ReadUint64() uint64 { return r.ReadBits(64) }

// ReadFloat32 reads the 32 bits of an IEEE 754 float.
func (r *Reader) ReadFloat32() float32 { return math.Float32frombits(uint32(r.ReadBits(32))) }

// ReadFloat64 reads the 64 bits of an IEEE 754 double.
func (r *Reader) ReadFloat64() float64 { return math.Float64frombits(r.ReadBits(64)) }

// ReadInt reads what WriteInt wrote with the same limit; always below limit
// when limit is at least 1.
func (r *Reader) ReadInt(limit uint32) uint32 {
	n := IntBits(0, limit) // the widest form
	if n == 0 {
		return 0
	}
	v := uint32(r.ReadBits(n - 1))
	if uint64(v)+1<<(n-1) < uint64(limit) {
		v |= uint32(r.ReadBits(1)) << (n - 1)
	}
	if r.err != nil {
		return 0
	}
	return v
}

// ReadIntPacked reads what WriteIntPacked wrote. More than 5 groups, or a value
// over 32 bits, is ErrFormat.
func (r *Reader) ReadIntPacked() uint32 { return uint32(r.readPacked(32)) }

// ReadIntPacked64 reads what WriteIntPacked64 wrote. More than 10 groups, or a
// value over 64 bits, is ErrFormat.
func (r *Reader) ReadIntPacked64() uint64 { return r.readPacked(64) }

// readPacked reads groups of seven bits into a value of size bits. The group that
// passes the top bit must be the last and hold nothing above it.
func (r *Reader) readPacked(size uint) (v uint64) {
	for shift := uint(0); shift < size; shift += 7 {
		g := r.ReadBits(8)
		if left := size - shift; left < 7 && g>>(left+1) != 0 {
			break
		}
		v |= g >> 1 << shift
		if g&1 == 0 {
			if r.err != nil {
				return 0
			}
			return v
		}
	}
	r.Fail(ErrFormat)
	return 0
}

// ReadBytes fills dst with whole bytes from the current bit. On an error dst is
// left as it was. dst must not overlap the buffer.
func (r *Reader) ReadBytes(dst []byte) { r.ReadBitsTo(dst, len(dst)*8) }

// ReadBitsTo puts n bits into the front of dst; the last byte is padded with
// zeros. On an error dst is left as it was. dst must not overlap the buffer.
func (r *Reader) ReadBitsTo(dst []byte, n int) {
	if n < 0 || n > len(dst)*8 || n > r.limit-r.pos {
		r.Fail(ErrShort)
		return
	}
	whole := n >> 3
	copyBytes(dst[:whole], r.buf, r.pos)
	r.pos += whole * 8
	if n&7 != 0 {
		dst[whole] = byte(r.ReadBits(n & 7))
	}
}

// Sub takes the next n bits as a Reader of their own and skips them here; its Pos
// and Align go on counting from the start of the whole. With fewer bits left both
// fail.
func (r *Reader) Sub(n int) (sub Reader) {
	r.SubTo(&sub, n)
	return sub
}

// SubTo is Sub into a Reader that is there already.
func (r *Reader) SubTo(sub *Reader, n int) {
	if n < 0 || n > r.limit-r.pos {
		r.Fail(ErrShort)
		*sub = Reader{limit: -1, err: ErrShort}
		return
	}
	// Field by field: to copy at once what was written in parts a moment ago has to wait for these.
	sub.buf, sub.pos, sub.limit, sub.err = r.buf, r.pos, r.pos+n, nil
	r.pos += n
}

// Skip passes over n bits.
func (r *Reader) Skip(n int) {
	if n < 0 || n > r.limit-r.pos {
		r.Fail(ErrShort)
		return
	}
	r.pos += n
}

// Align skips to the next whole byte.
func (r *Reader) Align() { r.Skip(-r.pos & 7) }

// StripTerminator ends the bits at the last one that is set, and drops that bit
// too: the end mark of a packet, which at most seven zeros may follow. Without
// one it is ErrFormat.
func (r *Reader) StripTerminator() {
	for i := r.limit - 1; i >= r.pos && i > r.limit-9; i-- {
		if r.buf[i>>3]>>uint(i&7)&1 != 0 {
			r.limit = i
			return
		}
	}
	r.Fail(ErrFormat)
}
