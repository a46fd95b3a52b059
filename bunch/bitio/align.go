package bitio

import "encoding/binary"

// copyBytes fills dst with the bits of src from bit on, which src must hold.
func copyBytes(dst, src []byte, bit int) {
	src = src[bit>>3:]
	s := uint(bit & 7)
	if s == 0 {
		copy(dst, src)
		return
	}
	i := 0
	for ; i+32 <= len(dst); i += 32 {
		from, to := src[i:i+33:i+33], dst[i:i+32:i+32]
		a, b := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])
		c, d := binary.LittleEndian.Uint64(from[16:]), binary.LittleEndian.Uint64(from[24:])
		binary.LittleEndian.PutUint64(to, a>>s|b<<(64-s))
		binary.LittleEndian.PutUint64(to[8:], b>>s|c<<(64-s))
		binary.LittleEndian.PutUint64(to[16:], c>>s|d<<(64-s))
		binary.LittleEndian.PutUint64(to[24:], d>>s|uint64(from[32])<<(64-s))
	}
	for ; i+8 <= len(dst); i += 8 {
		binary.LittleEndian.PutUint64(dst[i:], word(src[i:], s))
	}
	if last := len(dst) - 8; last >= 0 && i < len(dst) { // the last eight bytes once more, with the rest
		binary.LittleEndian.PutUint64(dst[last:], word(src[last:], s))
		return
	}
	for ; i < len(dst); i++ {
		dst[i] = src[i]>>s | src[i+1]<<(8-s)
	}
}

// word is the 64 bits of src from bit s on; 0 < s < 8.
func word(src []byte, s uint) uint64 {
	return binary.LittleEndian.Uint64(src)>>s | uint64(src[8])<<(64-s)
}

// writeWords appends src, whole words for which there is room. Writers bring their source to a whole byte first, so that only what is written is shifted.
func (w *Writer) writeWords(src []byte) {
	dst, s := w.buf[w.pos>>3:], uint(w.pos&7)
	w.pos += 8 * len(src)
	if s == 0 {
		copy(dst, src)
		return
	}
	if len(src) == 0 {
		return
	}
	rest, i := uint64(dst[0])&(1<<s-1), 0
	for ; i+32 <= len(src); i += 32 {
		from, to := src[i:i+32:i+32], dst[i:i+32:i+32]
		a, b := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])
		c, d := binary.LittleEndian.Uint64(from[16:]), binary.LittleEndian.Uint64(from[24:])
		binary.LittleEndian.PutUint64(to, rest|a<<s)
		binary.LittleEndian.PutUint64(to[8:], a>>(64-s)|b<<s)
		binary.LittleEndian.PutUint64(to[16:], b>>(64-s)|c<<s)
		binary.LittleEndian.PutUint64(to[24:], c>>(64-s)|d<<s)
		rest = d >> (64 - s)
	}
	for ; i < len(src); i += 8 {
		v := binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(dst[i:], rest|v<<s)
		rest = v >> (64 - s)
	}
	dst[i] = byte(rest)
}
