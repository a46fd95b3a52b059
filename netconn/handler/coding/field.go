package coding

import (
	"crypto/subtle"
	"encoding/binary"
)

// The field is GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11d). products has all products, 64 KiB: a row of it is what a
// coefficient makes of each byte.
var products, inverses = tables()

func tables() (product [256][256]uint8, inverse [256]uint8) {
	for a := 1; a < 256; a++ {
		power := a // a times x^i
		for i := 1; i < 256; i <<= 1 {
			for b := range i {
				product[a][i+b] = product[a][b] ^ uint8(power)
			}
			if power <<= 1; power > 255 {
				power ^= 0x11d
			}
		}
		for b := range 256 {
			if product[a][b] == 1 {
				inverse[a] = uint8(b)
			}
		}
	}
	return product, inverse
}

// word is the bytes that addProduct takes at a time. Buffers are padded with zeros to whole words.
const word = 8

func padded(n int) int { return (n + word - 1) &^ (word - 1) }

// addProduct adds the product of a coefficient and src to dst. Both are whole words; what src has more is left out.
func addProduct(dst, src []byte, coefficient uint8) {
	if coefficient == 1 {
		n := min(len(dst), len(src))
		subtle.XORBytes(dst[:n], dst[:n], src[:n])
		return
	}
	row := &products[coefficient]
	for len(dst) >= word && len(src) >= word {
		w := binary.LittleEndian.Uint64(src)
		v := uint64(row[uint8(w)]) | uint64(row[uint8(w>>8)])<<8 | uint64(row[uint8(w>>16)])<<16 | uint64(row[uint8(w>>24)])<<24 |
			uint64(row[uint8(w>>32)])<<32 | uint64(row[uint8(w>>40)])<<40 | uint64(row[uint8(w>>48)])<<48 | uint64(row[uint8(w>>56)])<<56
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(dst)^v)
		dst, src = dst[word:], src[word:]
	}
}

// scale multiplies dst by a coefficient.
func scale(dst []byte, coefficient uint8) {
	row := &products[coefficient]
	for i, v := range dst {
		dst[i] = row[v]
	}
}
