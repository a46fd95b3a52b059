package netcode

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Key is a key of ChaCha20-Poly1305. Printing or logging it shows nothing of it.
type Key [KeyBytes]byte

// ErrKey is a text that is no key.
var ErrKey = errors.New("netcode: a key is 64 hex digits; make one with: openssl rand -hex 32")

// ParseKey reads a key of 64 hex digits.
func ParseKey(s string) (k Key, err error) {
	if _, err := hex.Decode(k[:], []byte(s[:min(len(s), 2*KeyBytes)])); err != nil || len(s) != 2*KeyBytes {
		return Key{}, ErrKey // what hex says would show a part of it
	}
	return k, nil
}

// GenerateKey makes a key from a secure random source; nil is crypto/rand.Reader.
func GenerateKey(source io.Reader) (k Key, err error) {
	if source == nil {
		source = rand.Reader
	}
	if _, err := io.ReadFull(source, k[:]); err != nil {
		return Key{}, fmt.Errorf("netcode: no randomness for a key: %w", err)
	}
	return k, nil
}

// IsZero reports whether the key was never set.
func (k Key) IsZero() bool { return k == Key{} }

// Hex is the key in the form that ParseKey reads: a secret.
func (k Key) Hex() string { return hex.EncodeToString(k[:]) }

const redacted = "netcode.Key(secret)"

// String hides the key.
func (Key) String() string { return redacted }

// Format hides the key from every verb.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the key from log/slog.
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// Format shows how full a server is and nothing of its keys.
func (s *Server) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "netcode.Server(%d of %d slots)", s.Clients(), s.cfg.Slots)
}

// Format shows a client's state and nothing of its keys.
func (c *Client) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "netcode.Client(%v)", c.state) }

// MarshalText refuses: encoders must not write keys by accident.
func (Key) MarshalText() ([]byte, error) {
	return nil, errors.New("netcode: a key isn't for writing; use Hex if you mean it")
}
