package netcode

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
)

// PathID names a connection when its client comes by another path, such as a web.Server's session. It is the first 16 bytes of HMAC-SHA256 of
// "bunchnet path" with the key that the client seals its packets with. So only the client, the server and the token's back end know it. Printing or logging
// it shows nothing of it.
type PathID [16]byte

// pathOf is the path id of a connection with a client's key.
func pathOf(c2s *Key) (id PathID) {
	h := hmac.New(sha256.New, c2s[:])
	_, _ = io.WriteString(h, "bunchnet path") // never fails
	copy(id[:], h.Sum(nil))
	return id
}

const redactedPath = "netcode.PathID(secret)"

// String hides the id.
func (PathID) String() string { return redactedPath }

// Format hides the id from every verb.
func (PathID) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redactedPath) }

// LogValue hides the id from log/slog.
func (PathID) LogValue() slog.Value { return slog.StringValue(redactedPath) }

// PathID returns the path id of the connection that a client makes with the token. ok is false for bytes that are no connect token.
func (t Token) PathID() (id PathID, ok bool) {
	var p public
	if len(t) != ConnectTokenBytes || p.read(t) != nil {
		return PathID{}, false
	}
	return pathOf(&p.c2s), true
}

// AddrOfPath returns the address of the client whose connection has a path id. ok is false when there is none.
func (s *Server) AddrOfPath(id PathID) (addr netip.AddrPort, ok bool) {
	slot, ok := s.byPath[id]
	if !ok {
		return netip.AddrPort{}, false
	}
	return s.slots[slot].addr, true
}
