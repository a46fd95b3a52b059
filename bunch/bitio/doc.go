// Package bitio reads and writes Unreal's bit streams.
//
// Every packet, bunch and replicated property of this module is a run of bits. A
// [Writer] writes it and a [Reader] reads it. This package defines widths and bit
// order; the packages above define what the bits mean.
//
// # Bit order
//
// Bits fill each byte from its least significant bit up; numbers of several
// bytes are little-endian. No alignment is ever inserted:
//
//	WriteBits(0b101, 3); WriteBits(0b11111, 5); WriteUint16(0x1234)
//
//	byte 0            byte 1            byte 2
//	7 6 5 4 3 2 1 0   7 ... 0           7 ... 0
//	1 1 1 1 1|1 0 1   0x34              0x12
//	 5 bits   3 bits
//
// # Encodings (the same in Unreal 4.18 to 5.8)
//
//	Bool       1 bit
//	Int(max)   SerializeInt: low bits first, and a bit is left out when
//	           setting it would reach max. Width log2(max) for powers of two,
//	           otherwise it depends on the value: with max 15 every value
//	           takes 4 bits but 7, which takes 3
//	IntPacked  groups of 8 bits: bit 0 "another group follows", bits 1..7 the
//	           next seven bits of the value, lowest first; 1 to 5 groups
//	String     FString: i32 count including the final NUL, then that many 8-bit
//	           characters; a negative count is UTF-16LE units; 0 is empty
//
// # Errors
//
// Errors are sticky: after the first one a Writer writes nothing and a Reader
// returns zeros, so a caller checks Err once at the end. A Reader never panics,
// whatever bytes it is given.
//
//	w := bitio.NewWriter(buf[:])
//	w.WriteBool(true)
//	w.WriteIntPacked(channel)
//	if err := w.Err(); err != nil { ... }
//
// A [Writer] can take back what it wrote since a [Mark]. That is used for a bunch
// that doesn't fit its packet, or that turns out to be empty.
package bitio
