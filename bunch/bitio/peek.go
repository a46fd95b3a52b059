package bitio

import "encoding/binary"

// Peek64 returns the next 64 bits without taking them; ok is false when fewer are left. With Skip
// it lets a decoder of many small fields look at all of them at once.
func (r *Reader) Peek64() (v uint64, ok bool) {
	i, s := uint(r.pos)>>3, uint(r.pos)&7
	if r.limit-r.pos < 64 || i+9 > uint(len(r.buf)) {
		return 0, false
	}
	b := r.buf[i : i+9 : i+9]
	return binary.LittleEndian.Uint64(b)>>s | uint64(b[8])<<(64-s), true
}
