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

// Component writes and checks the prefix of game packets: magic, IDs and a handshake bit of 0. It is a handler.Component.
type Component struct {
	Protocol            Protocol
	SessionID, ClientID uint8
	// Lenient also accepts client ID 0. Some clients send it until the server's first packet tells them their ID.
	Lenient bool
}

// ReservedBits returns the size of the prefix: the magic and 6 bits with IDs, 1 without.
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
