package rendezvous

import (
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/bunchnet/bunchnet/netconn/ice"
)

// letter is what host and guest say to each other. The service carries it sealed.
type letter struct {
	Name    string       `json:"name,omitempty"`    // guest: who it is, first
	Again   bool         `json:"again,omitempty"`   // guest, first: it has joined, and looks for another path
	Message *ice.Message `json:"ice,omitempty"`     // both
	Token   []byte       `json:"token,omitempty"`   // host: once there is a path
	Refused string       `json:"refused,omitempty"` // host: why not
}

// secret seals letters between one host and one guest: ChaCha20-Poly1305 with keys from their X25519 keys. Letters come in order, so each is opened with the
// number of those before.
type secret struct {
	out, in  cipher.AEAD
	sent, of uint64
}

const keyLabel = "bunchnet rendezvous 1: "

var errForged = errors.New("rendezvous: a letter that the other player didn't write, or that is missing: whoever runs the rendezvous may be lying")

// newSecret makes the keys of one end; host says which.
func newSecret(own *ecdh.PrivateKey, theirs []byte, host bool) (*secret, error) {
	public, err := ecdh.X25519().NewPublicKey(theirs)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: the other player's key: %w", err)
	}
	shared, err := own.ECDH(public)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: the other player's key: %w", err)
	}
	keys := string(own.PublicKey().Bytes()) + string(theirs)
	if !host {
		keys = string(theirs) + string(own.PublicKey().Bytes())
	}
	var made [2]cipher.AEAD
	for i, from := range []string{"host ", "guest "} {
		key, err := hkdf.Key(sha256.New, shared, nil, keyLabel+from+keys, chacha20poly1305.KeySize)
		if err != nil {
			return nil, err
		}
		if made[i], err = chacha20poly1305.New(key); err != nil {
			return nil, err
		}
	}
	if host {
		return &secret{out: made[0], in: made[1]}, nil
	}
	return &secret{out: made[1], in: made[0]}, nil
}

func nonce(n uint64) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 4, chacha20poly1305.NonceSize), n)
}

// seal seals the next letter.
func (s *secret) seal(l letter) ([]byte, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	s.sent++
	return s.out.Seal(nil, nonce(s.sent-1), text, nil), nil
}

// open opens the next one.
func (s *secret) open(p []byte) (l letter, err error) {
	text, err := s.in.Open(nil, nonce(s.of), p, nil)
	if err != nil {
		return l, errForged
	}
	s.of++
	if err := json.Unmarshal(text, &l); err != nil {
		return letter{}, fmt.Errorf("rendezvous: a letter: %w", err)
	}
	return l, nil
}

func newKey() (*ecdh.PrivateKey, error) { return ecdh.X25519().GenerateKey(rand.Reader) }

// fingerprintBytes is how much of the hash of a host's key a link has.
const fingerprintBytes = 16

// fingerprint is what a link says of the host's key.
func fingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return base64.RawURLEncoding.EncodeToString(sum[:fingerprintBytes])
}
