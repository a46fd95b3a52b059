package bitio

import "encoding/binary"

// copyBytes fills dst with the bits of src from bit on, which src must hold.
// Every copy of more than a few bits comes down to this loop: writers first bring
// their own position to a whole byte, so that only the source is shifted.
func copyBytes(dst, src []byte, bit int) {
	src = src[bit>>3:]
	s := uint(bit & 7)
	if s == 0 {
		copy(dst, src)
		return
	}
	for len(dst) >= 32 && len(src) >= 33 { // each word is loaded once
		a, b := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])
		c, d := binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:])
		binary.LittleEndian.PutUint64(dst, a>>s|b<<(64-s))
		binary.LittleEndian.PutUint64(dst[8:], b>>s|c<<(64-s))
		binary.LittleEndian.PutUint64(dst[16:], c>>s|d<<(64-s))
		binary.LittleEndian.PutUint64(dst[24:], d>>s|uint64(src[32])<<(64-s))
		dst, src = dst[32:], src[32:]
	}
	for len(dst) >= 8 && len(src) >= 9 {
		v := binary.LittleEndian.Uint64(src)>>s | uint64(src[8])<<(64-s)
		binary.LittleEndian.PutUint64(dst, v)
		dst, src = dst[8:], src[8:]
	}
	for i := range dst {
		dst[i] = src[i]>>s | src[i+1]<<(8-s)
	}
}
