package rollback

import (
	"bytes"
	"encoding/binary"
)

const (
	wireVersion = 1

	typePlay  = 1
	typeFinal = 2
	typeWatch = 3

	// packetHead is the most bytes before a packet's sections, sectionHead before a section's inputs.
	packetHead  = 1 + 1 + 4 + 10 + 3 + 1 + MaxPlayers*3 + 10 + 8
	sectionHead = 1 + 10 + 1
	// watchHead is the most bytes before a spectator's inputs.
	watchHead = 1 + 1 + 4 + 10
	// sectionInputs is the most inputs of a section.
	sectionInputs = 128
	// maxFrame is far beyond any game, and far from where sums overflow.
	maxFrame = 1 << 48
)

// reader takes fields off p. After a failure bad is set and all fields are zero.
type reader struct {
	p   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.p) {
		r.bad = true
		return nil
	}
	b := r.p[:n:n]
	r.p = r.p[n:]
	return b
}

func (r *reader) uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// frame is a uvarint of a frame's number.
func (r *reader) frame() int64 {
	v, n := binary.Uvarint(r.p)
	if r.bad || n <= 0 || v > maxFrame {
		r.bad = true
		return 0
	}
	r.p = r.p[n:]
	return int64(v)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.p)
	if r.bad || n <= 0 || v < -maxFrame || v > maxFrame {
		r.bad = true
		return 0
	}
	r.p = r.p[n:]
	return v
}

// appendInputs appends the inputs of count frames from first on, each of size bytes, as far as they fit; at gives them. It returns how many do.
func appendInputs(b []byte, room, size int, first, count int64, at func(frame int64) []byte) ([]byte, int) {
	start := len(b)
	for n := int(min(count, sectionInputs)); n > 0; n-- { // most often all of them fit
		b = append(b[:start], byte(n))
		b = append(b, make([]byte, (n+7)/8)...)
		flags := b[start+1:]
		var last []byte
		for i := range n {
			in := at(first + int64(i))
			if same := last == nil && isZero(in) || last != nil && bytes.Equal(in, last); same {
				flags[i/8] |= 1 << (i % 8)
			} else {
				b = append(b, in...)
				flags = b[start+1:]
			}
			last = in
		}
		if len(b) <= room {
			return b, n
		}
	}
	return b[:start], 0
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// run is inputs that follow each other in a packet.
type run struct {
	count int
	flags []byte
	rest  []byte // those that aren't as the one before
}

// readRun takes one off a packet.
func (r *reader) readRun(size int) (v run) {
	v.count = int(r.uint8())
	v.flags = r.take((v.count + 7) / 8)
	if r.bad || v.count == 0 || v.count > sectionInputs {
		r.bad = true
		return run{}
	}
	other := 0
	for i := range v.count {
		if v.flags[i/8]>>(i%8)&1 == 0 {
			other++
		}
	}
	v.rest = r.take(other * size)
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
