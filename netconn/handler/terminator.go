package handler

import (
	"errors"
	"math/bits"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Errors of a packet's end.
var (
	// ErrZeroSize is an empty packet.
	ErrZeroSize = errors.New("handler: empty packet; drop it")
	// ErrZeroLastByte is a packet whose last byte is zero, so that it has no terminator.
	ErrZeroLastByte = errors.New("handler: last byte of the packet is zero; drop it")
)

// WriteTerminator ends a packet: a lone 1 bit. The zeros to a whole byte are what
// w.Bytes pads with.
func WriteTerminator(w *bitio.Writer) { w.WriteBool(true) }

// StripTerminator is the number of bits in front of the terminator of a datagram.
func StripTerminator(p []byte) (bits int, err error) {
	var r bitio.Reader
	err = Open(&r, p)
	return r.Remaining(), err
}

// Open has r read the bits of a datagram in front of its terminator; they alias p.
func Open(r *bitio.Reader, p []byte) error {
	switch {
	case len(p) == 0:
		return ErrZeroSize
	case p[len(p)-1] == 0:
		return ErrZeroLastByte
	}
	r.Reset(p, len(p)*8-1-bits.LeadingZeros8(p[len(p)-1]))
	return nil
}
