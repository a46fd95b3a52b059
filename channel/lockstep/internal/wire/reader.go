// Package wire takes fields off packets: for package lockstep and those below it.
package wire

import (
	"encoding/binary"
	"math"
)

// Reader takes fields off P. After a failure Bad is set and all fields are zero.
type Reader struct {
	P   []byte
	Bad bool
}

// Take is the next n bytes, in the packet itself; nil when there are fewer.
func (r *Reader) Take(n int) []byte {
	if r.Bad || n < 0 || n > len(r.P) {
		r.Bad = true
		return nil
	}
	b := r.P[:n:n]
	r.P = r.P[n:]
	return b
}

// Uint8 is a byte.
func (r *Reader) Uint8() uint8 {
	if b := r.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint16 is two bytes, the low one first.
func (r *Reader) Uint16() uint16 {
	if b := r.Take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// Uint32 is four.
func (r *Reader) Uint32() uint32 {
	if b := r.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Uint64 is eight.
func (r *Reader) Uint64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint is a number of 7 bits a byte, the low ones first.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.P)
	if r.Bad || n <= 0 {
		r.Bad = true
		return 0
	}
	r.P = r.P[n:]
	return v
}

// Count is a uvarint that sums of a few can't overflow.
func (r *Reader) Count() int64 {
	v := r.Uvarint()
	if v > math.MaxInt64/8 {
		r.Bad = true
		return 0
	}
	return int64(v)
}

// Bytes is a length of at most limit and so many bytes.
func (r *Reader) Bytes(limit int) []byte {
	n := r.Uvarint()
	if n > uint64(limit) {
		r.Bad = true
		return nil
	}
	return r.Take(int(n))
}

// Small is a Count up to 65535.
func (r *Reader) Small() int {
	v := r.Count()
	if v > 1<<16-1 {
		r.Bad = true
		return 0
	}
	return int(v)
}

// Done reports whether all was read, and nothing was missing.
func (r *Reader) Done() bool { return !r.Bad && len(r.P) == 0 }
