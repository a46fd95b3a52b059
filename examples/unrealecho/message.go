package main

import (
	"encoding/binary"
	"errors"
	"hash/fnv"

	"github.com/bunchnet/bunchnet/bunch"
)

// A message is u32le id, u32le n, n bytes, u32le FNV-1a of all before; the n bytes follow from the
// id, so that either end can tell whether they are intact.
const overhead = 12

func fill(id uint32, p []byte) {
	x := id*2654435761 + 1
	for i := range p {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		p[i] = byte(x)
	}
}

// encode is a message of n bytes of content.
func encode(id uint32, n int) []byte {
	b := make([]byte, n+overhead)
	binary.LittleEndian.PutUint32(b, id)
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	fill(id, b[8:8+n])
	h := fnv.New32a()
	h.Write(b[:8+n])
	binary.LittleEndian.PutUint32(b[8+n:], h.Sum32())
	return b
}

var errCorrupt = errors.New("corrupt message")

// decode takes the first message of b and returns its id and what follows it: bunches may have
// been merged on the way.
func decode(b []byte) (id uint32, rest []byte, err error) {
	if len(b) < overhead {
		return 0, nil, errCorrupt
	}
	id = binary.LittleEndian.Uint32(b)
	n := int64(binary.LittleEndian.Uint32(b[4:]))
	if n > int64(len(b)-overhead) {
		return 0, nil, errCorrupt
	}
	want := encode(id, int(n))
	if string(want) != string(b[:len(want)]) {
		return 0, nil, errCorrupt
	}
	return id, b[len(want):], nil
}

// payload is the bytes of a bunch, and false if it has odd bits.
func payload(in *bunch.In) ([]byte, bool) {
	b := make([]byte, (in.Bits+7)/8)
	in.Data.ReadBitsTo(b, in.Bits)
	return b, in.Bits%8 == 0
}
