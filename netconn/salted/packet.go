package salted

import (
	"encoding/binary"
	"hash/crc32"
)

// Sizes in bytes.
const (
	// Headroom is the room that SendPayload needs before a payload, for the header.
	Headroom = 13
	// Overhead is how much larger a packet is than its payload.
	Overhead = Headroom
	// MaxPayload is the largest payload: what is left of 1452 bytes, Ethernet's 1500 less the headers of IPv6 and UDP.
	MaxPayload = 1452 - Overhead
	// PaddedSize is the size of requests and responses, as in the published scheme.
	PaddedSize = 1000
	// MaxPacket is the largest packet.
	MaxPacket = Overhead + MaxPayload

	challengeSize       = 21
	deniedSize          = 14
	serverKeepAliveSize = 17
	clientKeepAliveSize = 13
	disconnectSize      = 14
)

// disconnectCopies is how often a disconnect is sent, since nothing answers it.
const disconnectCopies = 10

type packetType uint8

const (
	typeRequest packetType = 1 + iota
	typeChallenge
	typeResponse
	typeDenied
	typeKeepAlive
	typePayload
	typeDisconnect
)

// framer closes and opens packets of one protocol. Its value is the CRC-32 of the
// protocol id.
type framer uint32

func newFramer(protocolID uint64) framer {
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], protocolID)
	return framer(crc32.ChecksumIEEE(id[:]))
}

// close fills in the type and the checksum of a packet whose other fields are there.
func (f framer) close(p []byte, t packetType) []byte {
	p[4] = byte(t)
	binary.LittleEndian.PutUint32(p, crc32.Update(uint32(f), crc32.IEEETable, p[4:]))
	return p
}

// open returns the type of a packet, known or not, and why it is refused.
func (f framer) open(p []byte) (packetType, refusal) {
	if len(p) < Overhead {
		return 0, tooShort
	}
	if len(p) > MaxPacket {
		return 0, badSize
	}
	if crc32.Update(uint32(f), crc32.IEEETable, p[4:]) != binary.LittleEndian.Uint32(p) {
		return 0, badChecksum
	}
	return packetType(p[4]), accepted
}

// first and second are the 64-bit fields of packets that have them.
func first(p []byte) uint64  { return binary.LittleEndian.Uint64(p[5:]) }
func second(p []byte) uint64 { return binary.LittleEndian.Uint64(p[13:]) }

func putFirst(p []byte, v uint64)  { binary.LittleEndian.PutUint64(p[5:], v) }
func putSecond(p []byte, v uint64) { binary.LittleEndian.PutUint64(p[13:], v) }

// padded reports why a request or response isn't padded as it must be. fields is where
// the padding begins.
func padded(p []byte, fields int) refusal {
	if len(p) != PaddedSize {
		return badSize
	}
	for _, b := range p[fields:] {
		if b != 0 {
			return badPadding
		}
	}
	return accepted
}
