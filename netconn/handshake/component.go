package handshake

import (
	"errors"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Errors of game packets on a connection; the packet is ignored.
var (
	ErrHandshake = errors.New("handshake: a handshake packet on a live connection")
	ErrSession   = errors.New("handshake: wrong session id")
	ErrClientID  = errors.New("handshake: wrong client id")
)

// Component is the prefix of game packets: magic, ids, and a handshake bit of 0. It is
// a handler.Component.
type Component struct {
	Protocol            Protocol
	SessionID, ClientID uint8
	// Lenient accepts client id 0 as well: some clients carry it until the server's
	// first packet tells them theirs.
	Lenient bool
}

// ReservedBits is the size of the prefix: 6 bits with ids, 1 without, and the magic.
func (c *Component) ReservedBits() int {
	n := c.Protocol.MagicBits + 1
	if c.Protocol.hasIDs() {
		n += sessionBits + clientBits
	}
	return n
}

// WritePrefix writes the prefix of a game packet.
func (c *Component) WritePrefix(w *bitio.Writer) {
	c.Protocol.writePrefix(w, c.SessionID, c.ClientID, false)
}

// ReadPrefix checks the prefix of a game packet.
func (c *Component) ReadPrefix(r *bitio.Reader) error {
	session, client, handshake, err := c.Protocol.readPrefix(r)
	switch {
	case err != nil:
		return err
	case handshake:
		return ErrHandshake
	case !c.Protocol.hasIDs():
		return nil
	case session != c.SessionID:
		return ErrSession
	case client != c.ClientID && !(c.Lenient && client == 0):
		return ErrClientID
	}
	return nil
}
