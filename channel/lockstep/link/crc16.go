package link

import "encoding/binary"

const (
	crcPoly = 0x1021
	crcInit = 0xffff
)

// crcTables[k][b] is byte b followed by k zero bytes, divided by the polynomial. Eight
// tables take eight bytes a step, some five times as fast as one table.
var crcTables = makeCRCTables()

func makeCRCTables() (t [8][256]uint16) {
	for b := range 256 {
		crc := uint16(b) << 8
		for range 8 {
			top := crc >> 15
			crc = crc<<1 ^ top*crcPoly
		}
		t[0][b] = crc
	}
	for k := 1; k < 8; k++ {
		for b := range 256 {
			prev := t[k-1][b]
			t[k][b] = prev<<8 ^ t[0][prev>>8]
		}
	}
	return t
}

// crc16 is the CRC-16/CCITT-FALSE of p when crc is crcInit, and goes on from crc otherwise.
func crc16(crc uint16, p []byte) uint16 {
	t := &crcTables
	for len(p) >= 8 {
		v := binary.BigEndian.Uint64(p) ^ uint64(crc)<<48
		crc = t[7][v>>56] ^ t[6][v>>48&255] ^ t[5][v>>40&255] ^ t[4][v>>32&255] ^
			t[3][v>>24&255] ^ t[2][v>>16&255] ^ t[1][v>>8&255] ^ t[0][v&255]
		p = p[8:]
	}
	for _, b := range p {
		crc = crc<<8 ^ t[0][byte(crc>>8)^b]
	}
	return crc
}
