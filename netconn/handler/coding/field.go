package coding

import "github.com/klauspost/reedsolomon"

// field is GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11d).
var field reedsolomon.LowLevel

// grain is what contents are padded to with zeros: field takes 64 bytes at a time with AVX2, and packets of about the same size need no new buffers.
const grain = 64

func padded(n int) int { return (n + grain - 1) &^ (grain - 1) }

// addProduct adds the product of a coefficient and src to dst. What the longer one has more is left out.
func addProduct(dst, src []byte, coefficient uint8) {
	n := min(len(dst), len(src))
	field.GalMulSliceXor(coefficient, src[:n], dst[:n])
}

// scale multiplies dst by a coefficient.
func scale(dst []byte, coefficient uint8) { field.GalMulSlice(coefficient, dst, dst) }
