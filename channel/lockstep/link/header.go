package link

import "encoding/binary"

// kind is the 4-bit type of a datagram.
type kind uint8

const (
	kindReliable kind = 1
	kindPing     kind = 2
	kindAck      kind = 3
)

const (
	kindMask     = 0x0f
	littleEndian = 0x10
	reserved     = 0xe0
)

// putMessage writes what leads a message.
func putMessage(p []byte, seq uint16, size int) {
	binary.LittleEndian.PutUint16(p, seq)
	p[2] = byte(size)
}

// seal writes the header's first fields, when all else is there.
func seal(p []byte, init uint16, k kind, ack uint16) {
	p[2] = byte(k) | littleEndian
	binary.LittleEndian.PutUint16(p[3:], ack)
	binary.LittleEndian.PutUint16(p, crc16(init, p[2:]))
}

// datagram is one that was parsed and found whole.
type datagram struct {
	kind   kind
	little bool
	ack    uint16
	rest   []byte // messages, each SEQ, size, data
}

func (d *datagram) uint16(p []byte) uint16 {
	if d.little {
		return binary.LittleEndian.Uint16(p)
	}
	return binary.BigEndian.Uint16(p)
}

// next takes the first message off rest.
func (d *datagram) next() (seq uint16, data []byte) {
	seq = d.uint16(d.rest)
	end := packedBytes + int(d.rest[2])
	data, d.rest = d.rest[packedBytes:end:end], d.rest[end:]
	return seq, data
}

// parse checks p wholly before anything is believed.
func parse(p []byte, init uint16) (d datagram, err error) {
	if len(p) < HeaderBytes {
		return d, ErrShort
	}
	d.kind, d.little = kind(p[2]&kindMask), p[2]&littleEndian != 0
	if d.uint16(p) != crc16(init, p[2:]) {
		return d, ErrChecksum
	}
	if p[2]&reserved != 0 || d.kind < kindReliable || d.kind > kindAck {
		return d, ErrHeader
	}
	d.ack, d.rest = d.uint16(p[3:]), p[5:]
	if d.kind != kindReliable {
		if len(p) != HeaderBytes || p[7] != 0 {
			return d, ErrLength
		}
		if d.kind == kindPing && d.uint16(p[5:]) == 0 {
			return d, ErrHeader
		}
		return d, nil
	}
	for r := d.rest; len(r) > 0; {
		if len(r) < packedBytes || len(r) < packedBytes+int(r[2]) {
			return d, ErrLength
		}
		r = r[packedBytes+int(r[2]):]
	}
	return d, nil
}
