package coding

import "unsafe"

// EncoderBytes and DecoderBytes are the most memory that each takes with packets of so many bytes.
func EncoderBytes(packet int) int {
	return int(unsafe.Sizeof(Encoder{})) + (MaxWindow+1)*bufferBytes(packet)
}

// DecoderBytes is the most memory that a decoder takes with packets of so many bytes.
func DecoderBytes(packet int) int {
	return int(unsafe.Sizeof(Decoder{})) + (slots+maxRows+1)*bufferBytes(packet)
}

func bufferBytes(n int) int { return (n + grain - 1) &^ (grain - 1) }

// grain is what the capacity of a buffer is rounded up to, so that packets of about the same size need no new ones.
const grain = 64
