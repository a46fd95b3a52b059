package handler

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Component is one stage of a chain.
type Component interface {
	// ReservedBits is the most bits that the prefix may take.
	ReservedBits() int
	// WritePrefix writes the prefix of a packet that is begun.
	WritePrefix(w *bitio.Writer)
	// ReadPrefix takes the prefix of a received packet. An error drops the packet.
	// r is valid until it returns.
	ReadPrefix(r *bitio.Reader) error
}

// Chain is components in the order of their prefixes. A chain without components adds
// nothing to a packet, not even a terminator; nil is such a chain. Not safe for concurrent use.
type Chain struct {
	components []Component
	r          bitio.Reader // kept here, since what components get would otherwise be allocated
}

// NewChain returns a chain of components, the first one's prefix first on the wire.
func NewChain(components ...Component) *Chain { return &Chain{components: components} }

func (c *Chain) empty() bool { return c == nil || len(c.components) == 0 }

// ReservedBits is what of a packet the chain may take, its terminator included.
func (c *Chain) ReservedBits() int {
	if c.empty() {
		return 0
	}
	n := 1
	for _, comp := range c.components {
		n += comp.ReservedBits()
	}
	return n
}

// Begin writes the prefixes of a new packet.
func (c *Chain) Begin(w *bitio.Writer) {
	if c.empty() {
		return
	}
	for _, comp := range c.components {
		comp.WritePrefix(w)
	}
}

// End writes the chain's terminator, behind the content's own.
func (c *Chain) End(w *bitio.Writer) {
	if !c.empty() {
		WriteTerminator(w)
	}
}

// Incoming takes a datagram's terminator and prefixes off and has r read its content, which
// aliases p and still ends in its own terminator. Without components it is p as it came.
func (c *Chain) Incoming(r *bitio.Reader, p []byte) error {
	if c.empty() {
		r.Reset(p, len(p)*8)
		return nil
	}
	if err := Open(&c.r, p); err != nil {
		return err
	}
	for _, comp := range c.components {
		if err := comp.ReadPrefix(&c.r); err != nil {
			return err
		}
	}
	if c.r.Err() != nil {
		return fmt.Errorf("handler: prefix: %w", c.r.Err())
	}
	c.r.SubTo(r, c.r.Remaining())
	return nil
}
