package ackbits

import "encoding/binary"

// HeaderBytes is the size of a Header on the wire.
const HeaderBytes = 8

// ackedBits is how many packets one header tells about.
const ackedBits = 32

// Header is what each packet begins with.
type Header struct {
	Seq     uint16 // of this packet
	Ack     uint16 // newest received
	AckBits uint32 // bit n: Ack-n was received
}

// Append appends h to dst.
func (h Header) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, h.Seq)
	dst = binary.LittleEndian.AppendUint16(dst, h.Ack)
	return binary.LittleEndian.AppendUint32(dst, h.AckBits)
}

// ParseHeader splits p into its header and payload, which aliases p. ok is false when p is
// too short.
func ParseHeader(p []byte) (h Header, payload []byte, ok bool) {
	if len(p) < HeaderBytes {
		return Header{}, nil, false
	}
	h.Seq = binary.LittleEndian.Uint16(p)
	h.Ack = binary.LittleEndian.Uint16(p[2:])
	h.AckBits = binary.LittleEndian.Uint32(p[4:])
	return h, p[HeaderBytes:], true
}
