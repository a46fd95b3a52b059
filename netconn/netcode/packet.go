package netcode

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"math/bits"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/bunchnet/bunchnet/netconn/internal/sealing"
)

type packetType uint8

const (
	typeRequest packetType = iota
	typeDenied
	typeChallenge
	typeResponse
	typeKeepAlive
	typePayload
	typeDisconnect
	types
)

// Headroom is the bytes that must be free before a payload, Tailroom the capacity behind it, so that it
// is sealed where it is.
const (
	Headroom = 9
	Tailroom = sealing.Overhead
)

// Reasons to refuse a packet.
var (
	ErrSize     = errors.New("netcode: wrong size for its type")
	ErrType     = errors.New("netcode: a type this end doesn't take")
	ErrSequence = errors.New("netcode: malformed sequence")
)

// sealer seals or opens the packets of one direction.
type sealer struct {
	aead       cipher.AEAD
	protocolID uint64
	room       sealing.Room
}

func newSealer(key *Key, protocolID uint64) *sealer {
	a, err := chacha20poly1305.New(key[:])
	if err != nil {
		panic(err) // only for a key of another size
	}
	return &sealer{aead: a, protocolID: protocolID}
}

// bind puts the nonce and the additional data of a packet into room.
func (s *sealer) bind(room *sealing.Room, prefix byte, seq uint64) (nonce, ad []byte) {
	nonce, ad = room[:chacha20poly1305.NonceSize], room[chacha20poly1305.NonceSize:][:versionBytes+8+1]
	clear(nonce)
	binary.LittleEndian.PutUint64(nonce[4:], seq)
	copy(ad, version)
	binary.LittleEndian.PutUint64(ad[versionBytes:], s.protocolID)
	ad[versionBytes+8] = prefix
	return nonce, ad
}

// seal turns buf[Headroom:], with Tailroom of capacity behind, into a packet and returns it; it begins
// within the headroom.
func (s *sealer) seal(t packetType, seq uint64, buf []byte) []byte {
	return s.Seal(frame(t, seq, buf), &s.room)
}

// frame puts a header before the payload buf[Headroom:] and returns both.
func frame(t packetType, seq uint64, buf []byte) []byte {
	n := max(1, (bits.Len64(seq)+7)/8)
	p := buf[Headroom-1-n:]
	p[0] = byte(n)<<4 | byte(t)
	for i := range n {
		p[1+i] = byte(seq >> (8 * i))
	}
	return p
}

// Seal seals a packet that frame has made. It implements sealing.Sealer: it changes only p and room.
func (s *sealer) Seal(p []byte, room *sealing.Room) []byte {
	n, seq := sequence(p)
	nonce, ad := s.bind(room, p[0], seq)
	return s.aead.Seal(p[:1+n], nonce, p[1+n:], ad)
}

// sequence is the sequence in a packet's header, and its length.
func sequence(p []byte) (n int, seq uint64) {
	n = int(p[0] >> 4)
	for i := range n {
		seq |= uint64(p[1+i]) << (8 * i)
	}
	return n, seq
}

// header is a sealed packet's type and sequence.
func header(p []byte) (t packetType, seq uint64, body []byte, err error) {
	if len(p) < 1+1+macBytes {
		return 0, 0, nil, ErrSize
	}
	t = packetType(p[0] & 15)
	n := int(p[0] >> 4)
	switch {
	case t == typeRequest || t >= types:
		return 0, 0, nil, ErrType
	case n < 1 || n > 8 || len(p) < 1+n+macBytes:
		return 0, 0, nil, ErrSequence
	}
	_, seq = sequence(p)
	return t, seq, p[1+n:], nil
}

// open opens body in place and checks its size.
func (s *sealer) open(prefix byte, seq uint64, body []byte) ([]byte, error) {
	nonce, ad := s.bind(&s.room, prefix, seq)
	plain, err := s.aead.Open(body[:0], nonce, body, ad)
	if err != nil {
		return nil, ErrSealed
	}
	ok := false
	switch n := len(plain); packetType(prefix & 15) {
	case typeDenied:
		ok = n <= 1 // a Denial, or none
	case typeDisconnect:
		ok = n == 0
	case typeChallenge, typeResponse:
		ok = n == 8+challengeBytes
	case typeKeepAlive:
		ok = n == 8
	case typePayload:
		ok = n >= 1 && n <= MaxPayload
	}
	if !ok {
		return nil, ErrSize
	}
	return plain, nil
}

// challenge is what a server has a client send back.
type challenge struct {
	clientID uint64
	userData [UserDataBytes]byte
	bound    [challengePad]byte // what it was made for; zeros in the reference
}

func (c *challenge) seal(a cipher.AEAD, seq uint64, dst []byte) {
	var nonce [chacha20poly1305.NonceSize]byte
	binary.LittleEndian.PutUint64(nonce[4:], seq)
	b := binary.LittleEndian.AppendUint64(dst[:0], c.clientID)
	b = append(b, c.userData[:]...)
	b = append(b, c.bound[:]...)
	a.Seal(b[:0], nonce[:], b, nil)
}

func (c *challenge) open(a cipher.AEAD, seq uint64, b []byte) error {
	var nonce [chacha20poly1305.NonceSize]byte
	binary.LittleEndian.PutUint64(nonce[4:], seq)
	plain, err := a.Open(b[:0], nonce[:], b, nil)
	if err != nil {
		return ErrSealed
	}
	c.clientID = binary.LittleEndian.Uint64(plain)
	copy(c.userData[:], plain[8:])
	copy(c.bound[:], plain[8+UserDataBytes:])
	return nil
}

// request is the packet that a client begins with: b is RequestBytes long.
func appendRequest(b []byte, p *public) []byte {
	b = append(b, byte(typeRequest))
	b = append(b, version...)
	b = binary.LittleEndian.AppendUint64(b, p.protocolID)
	b = binary.LittleEndian.AppendUint64(b, p.expire)
	b = append(b, p.nonce[:]...)
	return append(b, p.sealed[:]...)
}
