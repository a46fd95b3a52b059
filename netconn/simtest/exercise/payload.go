package exercise

import (
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A payload begins with its stream, its number and its length. These determine the bits that follow:
//
//	32  stream
//	32  number
//	20  bits that follow
//	..  bits made from stream and number
const payloadHeader = 32 + 32 + 20

func noise(stream, n uint32, i int) uint64 {
	x := uint64(stream)<<40 ^ uint64(n)<<16 ^ uint64(i)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// payload is the next of a stream, with so many bits of noise.
func (p *pipe) payload(s *stream, bits int) bunch.Out {
	if need := (payloadHeader+bits)/8 + 1; cap(p.writeBuffer) < need {
		p.writeBuffer = make([]byte, need)
	}
	var w bitio.Writer
	w.Reset(p.writeBuffer[:cap(p.writeBuffer)])
	n := s.Sent()
	w.WriteUint32(uint32(s.id))
	w.WriteUint32(n)
	w.WriteBits(uint64(bits), 20)
	for i := 0; i < bits; i += 64 {
		k := min(64, bits-i)
		w.WriteBits(noise(uint32(s.id), n, i)&(1<<uint(k)-1), k)
	}
	return bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: s.reliable(), NoMerge: p.e.p.rng.IntN(4) == 0}
}

// read takes a payload and checks that it is intact.
func (p *pipe) read(r *bitio.Reader) (s *stream, n uint32, ok bool) {
	g := p.e.g
	id := r.ReadUint32()
	n = r.ReadUint32()
	bits := int(r.ReadBits(20))
	if r.Err() != nil || uint64(id) >= uint64(len(g.streams)) || bits > r.Remaining() {
		g.w.Failf("order", "%v on %v: no payload of ours: stream %d, number %d, %d bits", p.e, p.ch, id, n, bits)
		return nil, 0, false
	}
	for i := 0; i < bits; i += 64 {
		k := min(64, bits-i)
		if got := r.ReadBits(k); got != noise(id, n, i)&(1<<uint(k)-1) {
			g.w.Failf("order", "%v on %v: number %d of %v isn't intact at bit %d", p.e, p.ch, n, g.streams[id], i)
			return nil, 0, false
		}
	}
	return g.streams[id], n, true
}
