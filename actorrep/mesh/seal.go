package mesh

import (
	"crypto/cipher"
	"fmt"
	"io"

	"golang.org/x/crypto/chacha20poly1305"
)

// seal encrypts packets between the servers that have a key. Those that forward a packet can't read or change it, deliver it to another server, or pass it off as
// another server's.
type seal struct {
	aead cipher.AEAD
	rand io.Reader
	id   string
	what byte   // of a Zone zoneSeal, so that its packets aren't a Server's; else 0
	ad   []byte // scratch
	out  []byte // scratch
}

// zoneSeal is more than the length of any ID.
const zoneSeal = 255

func newSeal(key [32]byte, id string, rand io.Reader, what byte) (*seal, error) {
	if key == ([32]byte{}) {
		return nil, fmt.Errorf("%w: Key is needed, the same at all servers", ErrConfig)
	}
	aead, err := chacha20poly1305.NewX(key[:])
	return &seal{aead: aead, rand: rand, id: id, what: what}, err
}

// between is the servers of a packet, which its seal covers.
func (s *seal) between(from, to string) []byte {
	s.ad = s.ad[:0]
	if s.what != 0 {
		s.ad = append(s.ad, s.what)
	}
	s.ad = append(append(append(s.ad, byte(len(from))), from...), to...)
	return s.ad
}

// close returns a sealed packet, valid until the next; nil when there is no randomness.
func (s *seal) close(to string, packet []byte) []byte {
	var nonce [chacha20poly1305.NonceSizeX]byte
	if _, err := io.ReadFull(s.rand, nonce[:]); err != nil {
		return nil
	}
	s.out = s.aead.Seal(append(s.out[:0], nonce[:]...), nonce[:], packet, s.between(s.id, to))
	return s.out
}

// open returns the packet in a sealed one; false when no server of the mesh has sent it to this one.
func (s *seal) open(from string, sealed []byte) ([]byte, bool) {
	const n = chacha20poly1305.NonceSizeX
	if len(sealed) < n || len(sealed) > MaxServerPacket || len(from) > maxID {
		return nil, false
	}
	packet, err := s.aead.Open(nil, sealed[:n], sealed[n:], s.between(from, s.id))
	return packet, err == nil
}
