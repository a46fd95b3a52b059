package rollback

import (
	"bytes"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

const (
	wireVersion = 1

	typePlay  = 1
	typeFinal = 2
	typeWatch = 3
	typeLeft  = 4

	// packetHead is the most bytes before a packet's sections, sectionHead before a section's inputs.
	packetHead  = 1 + 1 + 4 + 10 + 3 + 1 + MaxPlayers*3 + 10 + 8
	sectionHead = 1 + 10 + 1
	// watchHead is the most bytes before a spectator's inputs.
	watchHead = 1 + 1 + 4 + 10
	// sectionInputs is the most inputs of a section.
	sectionInputs = 128
	// maxLead bounds how far ahead a player says that it is, in frames.
	maxLead = 1000
	// maxFrame is far beyond any game, and far from where sums overflow.
	maxFrame = 1 << 48
)

// What a typeFinal says.
const (
	finalInputs = 0 // inputs, from a frame on
	finalGone   = 1 // those before a frame aren't kept any more
	finalOver   = 2 // there are none from a frame on: the player is out
)

// readFrame is a uvarint of a frame's number.
func readFrame(r *wire.Reader) int64 {
	v := r.Uvarint()
	if v > maxFrame {
		r.Bad = true
		return 0
	}
	return int64(v)
}

func readVarint(r *wire.Reader) int64 {
	u := r.Uvarint()
	v := int64(u>>1) ^ -int64(u&1) // zigzag
	if v < -maxFrame || v > maxFrame {
		r.Bad = true
		return 0
	}
	return v
}

// appendInputs appends the inputs of count frames from first on, as far as they fit; at gives them, and zero is what stands before the first. It
// returns how many do.
func appendInputs(b []byte, room int, zero []byte, first, count int64, at func(frame int64) []byte) ([]byte, int) {
	n, size, last := 0, len(b)+1, zero
	for most := int(min(count, sectionInputs)); n < most; n++ { // a peer may never ack: what doesn't fit isn't looked at
		in := at(first + int64(n))
		if size += (n+8)/8 - (n+7)/8; !bytes.Equal(in, last) {
			size += len(in)
		}
		if size > room {
			break
		}
		last = in
	}
	if n == 0 {
		return b, 0
	}
	b = append(b, byte(n))
	start := len(b)
	b = append(b, make([]byte, (n+7)/8)...)
	last = zero
	for i := range n {
		in := at(first + int64(i))
		if bytes.Equal(in, last) {
			b[start+i/8] |= 1 << (i % 8)
		} else {
			b = append(b, in...)
		}
		last = in
	}
	return b, n
}

// run is inputs that follow each other in a packet.
type run struct {
	count int
	flags []byte
	rest  []byte // those that aren't as the one before
}

// readRun takes one off a packet.
func readRun(r *wire.Reader, size int) (v run) {
	v.count = int(r.Uint8())
	v.flags = r.Take((v.count + 7) / 8)
	if r.Bad || v.count == 0 || v.count > sectionInputs {
		r.Bad = true
		return run{}
	}
	other := 0
	for i := range v.count {
		if v.flags[i/8]>>(i%8)&1 == 0 {
			other++
		}
	}
	v.rest = r.Take(other * size)
	return v
}

// each calls f with every input in order.
func (v *run) each(size int, zero []byte, f func(i int, b []byte)) {
	last, rest := zero, v.rest
	for i := range v.count {
		if v.flags[i/8]>>(i%8)&1 == 0 {
			last, rest = rest[:size:size], rest[size:]
		}
		f(i, last)
	}
}
