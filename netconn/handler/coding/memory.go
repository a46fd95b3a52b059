package coding

import "unsafe"

// EncoderBytes and DecoderBytes are the most memory that each takes with packets of so many bytes.
func EncoderBytes(packet int) int {
	return int(unsafe.Sizeof(Encoder{})) + (MaxWindow+1)*padded(packet)
}

// DecoderBytes is the most memory that a decoder takes with packets of so many bytes.
func DecoderBytes(packet int) int {
	return int(unsafe.Sizeof(Decoder{})) + (slots+maxRows+1)*padded(packet)
}
