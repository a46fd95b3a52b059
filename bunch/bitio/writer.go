package bitio

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

var (
	// ErrOverflow is a Writer's sticky error: the buffer is too small for what was written.
	ErrOverflow = errors.New("bitio: write past the end of the buffer; give it a larger one or roll back to a Mark")
	// ErrValue is a Writer's sticky error for a value that its encoding can't hold.
	ErrValue = errors.New("bitio: value out of the range of its encoding")
)

// Writer appends bits to a caller's buffer. The zero Writer has no room; use
// NewWriter or Reset. Not safe for concurrent use.
//
// Invariant: 0 <= pos <= limit <= 8*len(buf); bits at and after pos are undefined.
type Writer struct {
	buf   []byte
	pos   int // bits written
	limit int // bits there is room for; -1 after an error, so every check fails
	err   error
}

// NewWriter returns a Writer that fills buf, all of its length. Bytes of buf behind
// what was written may be overwritten with anything.
func NewWriter(buf []byte) *Writer {
	w := new(Writer)
	w.Reset(buf)
	return w
}

// Reset starts anew on buf.
func (w *Writer) Reset(buf []byte) {
	*w = Writer{buf: buf, limit: len(buf) * 8}
}

// ResetBits starts anew on buf with room for limit bits, at most all of buf.
func (w *Writer) ResetBits(buf []byte, limit int) {
	*w = Writer{buf: buf, limit: max(0, min(limit, len(buf)*8))}
}

// Len is the number of bits written.
func (w *Writer) Len() int { return w.pos }

// Free is the number of bits that still fit; 0 after an error.
func (w *Writer) Free() int { return max(0, w.limit-w.pos) }

// Err is the first error, or nil.
func (w *Writer) Err() error { return w.err }

// Bytes is what was written, its last byte padded with zeros. It aliases the
// buffer and is valid until the next write.
func (w *Writer) Bytes() []byte {
	n := (w.pos + 7) >> 3
	if s := uint(w.pos & 7); s != 0 {
		w.buf[n-1] &= 1<<s - 1
	}
	return w.buf[:n]
}

// A Mark is a position to roll back to.
type Mark struct {
	pos, limit int
	err        error
}

// Mark remembers the position, and whether there was an error.
func (w *Writer) Mark() Mark { return Mark{w.pos, w.limit, w.err} }

// Rollback forgets all that was written since m, an error included. What PatchBits
// changed before m stays changed.
func (w *Writer) Rollback(m Mark) { w.pos, w.limit, w.err = m.pos, m.limit, m.err }

// Truncate forgets all bits from pos on, which is at most Len, unless there was an error.
func (w *Writer) Truncate(pos int) {
	if w.err == nil && pos >= 0 && pos <= w.pos {
		w.pos = pos
	}
}

// SetLimit moves the end of the room to limit bits, at most the whole buffer
// and at least what is written.
func (w *Writer) SetLimit(limit int) {
	if w.err == nil {
		w.limit = max(w.pos, min(limit, len(w.buf)*8))
	}
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err, w.limit = err, -1
	}
}

// WriteBits writes the low n bits of v, lowest first. It is ErrOverflow unless
// 0 <= n <= 64.
func (w *Writer) WriteBits(v uint64, n int) {
	if uint(n) > 64 || n > w.limit-w.pos {
		w.fail(ErrOverflow)
		return
	}
	i, s := uint(w.pos)>>3, uint(w.pos)&7
	w.pos += n
	if i+9 <= uint(len(w.buf)) {
		b := w.buf[i : i+9 : i+9]
		binary.LittleEndian.PutUint64(b, uint64(b[0])&(1<<s-1)|v<<s) // what v has above its n bits comes after pos
		if s+uint(n) > 64 {
			b[8] = byte(v >> (64 - s))
		}
		return
	}
	w.writeTail(v, n, i, s)
}

// writeTail is WriteBits for the last nine bytes of a buffer.
func (w *Writer) writeTail(v uint64, n int, i, s uint) {
	if last := len(w.buf) - 8; last >= 0 {
		b := w.buf[last:]
		s += 8 * (i - uint(last))
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)&(1<<s-1)|v<<s)
		return
	}
	for n > 0 {
		w.buf[i] = w.buf[i]&(1<<s-1) | byte(v<<s)
		v >>= 8 - s
		n -= int(8 - s)
		i, s = i+1, 0
	}
}

// PatchBits overwrites n <= 64 bits at bit pos and leaves all others alone. Bits
// that weren't written before are ErrOverflow.
func (w *Writer) PatchBits(pos int, v uint64, n int) {
	if pos < 0 || uint(n) > 64 || n > w.pos-pos {
		w.fail(ErrOverflow)
		return
	}
	if i, s := uint(pos)>>3, uint(pos)&7; s+uint(n) <= 64 && i+8 <= uint(len(w.buf)) {
		b, m := w.buf[i:i+8:i+8], (uint64(1)<<uint(n)-1)<<s
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)&^m|v<<s&m)
		return
	}
	for n > 0 {
		i, s := pos>>3, uint(pos&7)
		k := min(n, int(8-s))
		m := byte(1<<uint(k)-1) << s
		w.buf[i] = w.buf[i]&^m | byte(v<<s)&m
		v >>= uint(k)
		pos, n = pos+k, n-k
	}
}

// WriteBool writes one bit.
func (w *Writer) WriteBool(b bool) {
	var v uint64
	if b {
		v = 1
	}
	w.WriteBits(v, 1)
}

// WriteUint8 writes 8 bits.
func (w *Writer) WriteUint8(v uint8) { w.WriteBits(uint64(v), 8) }

// WriteUint16 writes 16 bits.
func (w *Writer) WriteUint16(v uint16) { w.WriteBits(uint64(v), 16) }

// WriteUint32 writes 32 bits.
func (w *Writer) WriteUint32(v uint32) { w.WriteBits(uint64(v), 32) }

// WriteUint64 writes 64 bits.
func (w *Writer) WriteUint64(v uint64) { w.WriteBits(v, 64) }

// WriteFloat32 writes the 32 bits of an IEEE 754 float.
func (w *Writer) WriteFloat32(v float32) { w.WriteBits(uint64(math.Float32bits(v)), 32) }

// WriteFloat64 writes the 64 bits of an IEEE 754 double.
func (w *Writer) WriteFloat64(v float64) { w.WriteBits(math.Float64bits(v), 64) }

// IntBits is the number of bits that SerializeInt(v, limit) takes for v below limit. The first
// width-1 bits are always there; the last only when it could be set.
func IntBits(v, limit uint32) int {
	if limit < 2 {
		return 0
	}
	n := bits.Len32(limit - 1)
	top := uint64(1) << (n - 1)
	if uint64(v)&(top-1)+top < uint64(limit) {
		return n
	}
	return n - 1
}

// WriteInt writes v as SerializeInt(v, limit); v < limit, otherwise ErrValue.
func (w *Writer) WriteInt(v, limit uint32) {
	if v >= limit {
		w.fail(ErrValue)
		return
	}
	w.WriteBits(uint64(v), IntBits(v, limit))
}

// WriteIntWrapped is WriteInt without the range check: higher bits are dropped.
func (w *Writer) WriteIntWrapped(v, limit uint32) {
	w.WriteBits(uint64(v), IntBits(v, limit))
}

// WriteIntPacked writes v as SerializeIntPacked in 8 to 40 bits.
func (w *Writer) WriteIntPacked(v uint32) { w.WriteIntPacked64(uint64(v)) }

// WriteIntPacked64 is WriteIntPacked for 64-bit values, 8 to 80 bits.
func (w *Writer) WriteIntPacked64(v uint64) {
	if v < 1<<7 { // by far the most common
		w.WriteBits(v<<1, 8)
		return
	}
	for v >= 1<<7 {
		w.WriteBits(v<<1&0xfe|1, 8)
		v >>= 7
	}
	w.WriteBits(v<<1, 8)
}

// PackedBits is the number of bits WriteIntPacked64 takes for v.
func PackedBits(v uint64) int {
	return 8 * max(1, (bits.Len64(v)+6)/7)
}

// WriteBytes writes whole bytes at the current bit.
func (w *Writer) WriteBytes(p []byte) { w.WriteBitsFrom(p, 0, len(p)*8) }

// WriteBitsFrom copies n bits of src, from its bit srcBit on. What src doesn't hold
// is ErrOverflow. src must not overlap the buffer.
func (w *Writer) WriteBitsFrom(src []byte, srcBit, n int) {
	if srcBit < 0 || n < 0 || n > len(src)*8-srcBit || n > w.limit-w.pos {
		w.fail(ErrOverflow)
		return
	}
	if i, s := uint(srcBit)>>3, uint(srcBit)&7; s+uint(n) <= 64 && i+8 <= uint(len(src)) {
		w.WriteBits(binary.LittleEndian.Uint64(src[i:i+8])>>s, n)
		return
	}
	r := Reader{buf: src, pos: srcBit, limit: srcBit + n}
	if n >= 64 {
		if head := -srcBit & 7; head > 0 {
			w.WriteBits(r.ReadBits(head), head)
		}
		whole := (r.limit - r.pos) >> 6 * 8
		w.writeWords(src[r.pos>>3 : r.pos>>3+whole])
		r.pos += whole * 8
	}
	tail := r.limit - r.pos
	w.WriteBits(r.ReadBits(tail), tail)
}

// Align writes zeros up to the next whole byte.
func (w *Writer) Align() { w.WriteBits(0, -w.pos&7) }
