package simtest

import (
	"encoding/binary"
	"time"
)

// hash is FNV-1a of 64 bits.
type hash uint64

func newHash() hash { return 0xcbf29ce484222325 }

func (h *hash) write(b []byte) {
	v := uint64(*h)
	for _, c := range b {
		v = (v ^ uint64(c)) * 0x100000001b3
	}
	*h = hash(v)
}

// datagram adds a datagram: what became of it, when, between whom, and its bytes.
func (h *hash) datagram(what byte, now time.Duration, from, to int, p []byte) {
	var b [15]byte
	b[0] = what
	binary.LittleEndian.PutUint64(b[1:], uint64(now))
	binary.LittleEndian.PutUint16(b[9:], uint16(from))
	binary.LittleEndian.PutUint16(b[11:], uint16(to))
	binary.LittleEndian.PutUint16(b[13:], uint16(len(p)))
	h.write(b[:])
	h.write(p)
}
