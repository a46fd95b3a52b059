// Package handler wraps packets: a chain of components that put a prefix before a
// packet's content, as Unreal's PacketHandler does with its HandlerComponents. The
// stateless handshake is one (magic, session and client ids, handshake bit).
//
//	[prefix of component 0][prefix of component 1] ... [content][1][0..7 zeros]
//
// The chain ends a packet with one terminator of its own: a lone 1 bit behind the last
// content bit, then zeros to a whole byte. The content brings its own terminator as
// well, so that a game packet ends in two (Unreal 4.2x to 5.8). Prefixes need not be whole
// bytes: the content simply begins at the next bit.
//
// Components that seal whole packets (encryption) are not handlers here but links of the
// driver, since they work on bytes.
package handler

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Errors of a packet's end.
var (
	// ErrZeroSize is an empty packet.
	ErrZeroSize = errors.New("handler: empty packet")
	// ErrZeroLastByte is a packet whose last byte is zero, so that it has no terminator.
	ErrZeroLastByte = errors.New("handler: last byte of the packet is zero")
)

// Component is one stage of a chain.
type Component interface {
	// ReservedBits is the most bits the prefix may take.
	ReservedBits() int
	// WritePrefix writes the prefix of a packet that is begun.
	WritePrefix(w *bitio.Writer)
	// ReadPrefix takes the prefix of a received packet. An error drops the packet.
	ReadPrefix(r *bitio.Reader) error
}

// Chain is components in the order of their prefixes. A nil *Chain adds nothing.
type Chain struct {
	components []Component
	r          bitio.Reader // kept here, since what components get would otherwise be allocated
}

// NewChain returns a chain of components, the first one's prefix first on the wire.
func NewChain(components ...Component) *Chain { return &Chain{components: components} }

// ReservedBits is what of a packet the chain may take, its terminator included.
func (c *Chain) ReservedBits() int {
	n := 1
	for _, comp := range c.components {
		n += comp.ReservedBits()
	}
	return n
}

// Begin writes the prefixes of a new packet.
func (c *Chain) Begin(w *bitio.Writer) {
	for _, comp := range c.components {
		comp.WritePrefix(w)
	}
}

// End writes the chain's terminator.
func (c *Chain) End(w *bitio.Writer) { w.WriteBool(true) }

// Incoming takes a datagram's terminator and prefixes off and returns its content,
// which aliases p.
func (c *Chain) Incoming(p []byte) (r bitio.Reader, err error) {
	if c.r, err = Open(p); err != nil {
		return r, err
	}
	for _, comp := range c.components {
		if err := comp.ReadPrefix(&c.r); err != nil {
			return r, err
		}
	}
	if c.r.Err() != nil {
		return r, fmt.Errorf("handler: prefix: %w", c.r.Err())
	}
	return c.r, nil
}

// Open returns the bits of a datagram up to its terminator.
func Open(p []byte) (r bitio.Reader, err error) {
	switch {
	case len(p) == 0:
		return r, ErrZeroSize
	case p[len(p)-1] == 0:
		return r, ErrZeroLastByte
	}
	r.Reset(p, len(p)*8)
	r.StripTerminator()
	return r, nil
}
