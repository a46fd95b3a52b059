package netcode

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"math/bits"

	"golang.org/x/crypto/chacha20poly1305"
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
	Tailroom = macBytes
)

// Reasons to refuse a packet.
var (
	ErrSize     = errors.New("netcode: wrong size for its type")
	ErrType     = errors.New("netcode: a type this end doesn't take")
	ErrSequence = errors.New("netcode: malformed sequence")
)

// sealer seals or opens the packets of one direction. It keeps its nonce and additional data, so that
// sealing doesn't allocate.
type sealer struct {
	aead  cipher.AEAD
	ad    [versionBytes + 8 + 1]byte
	nonce [chacha20poly1305.NonceSize]byte
}

func newSealer(key *Key, protocolID uint64) *sealer {
	a, err := chacha20poly1305.New(key[:])
	if err != nil {
		panic(err) // only for a key of another size
	}
	s := &sealer{aead: a}
	copy(s.ad[:], version)
	binary.LittleEndian.PutUint64(s.ad[versionBytes:], protocolID)
	return s
}

// seal turns buf[Headroom:], with Tailroom of capacity behind, into a packet and returns it; it begins
// within the headroom.
func (s *sealer) seal(t packetType, seq uint64, buf []byte) []byte {
	n := max(1, (bits.Len64(seq)+7)/8)
	prefix := byte(n)<<4 | byte(t)
	s.ad[len(s.ad)-1] = prefix
	binary.LittleEndian.PutUint64(s.nonce[4:], seq)
	sealed := s.aead.Seal(buf[Headroom:Headroom], s.nonce[:], buf[Headroom:], s.ad[:])
	start := Headroom - 1 - n
	buf[start] = prefix
	for i := range n {
		buf[start+1+i] = byte(seq >> (8 * i))
	}
	return buf[start : Headroom+len(sealed)]
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
	for i := range n {
		seq |= uint64(p[1+i]) << (8 * i)
	}
	return t, seq, p[1+n:], nil
}

// open opens body in place and checks its size.
func (s *sealer) open(prefix byte, seq uint64, body []byte) ([]byte, error) {
	s.ad[len(s.ad)-1] = prefix
	binary.LittleEndian.PutUint64(s.nonce[4:], seq)
	plain, err := s.aead.Open(body[:0], s.nonce[:], body, s.ad[:])
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

// request is the packet that a client begins with: b is requestBytes long.
func appendRequest(b []byte, p *public) []byte {
	b = append(b, byte(typeRequest))
	b = append(b, version...)
	b = binary.LittleEndian.AppendUint64(b, p.protocolID)
	b = binary.LittleEndian.AppendUint64(b, p.expire)
	b = append(b, p.nonce[:]...)
	return append(b, p.sealed[:]...)
}
