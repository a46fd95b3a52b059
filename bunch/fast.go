package bunch

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Most bunches neither open nor close, and are on one of the first 16384 channels, with
// a hardcoded name. Their header fits 64 bits, and is written and read as one number.
const fastPacked = 1 << 14

// writeFast writes such a header, or nothing and says so.
func (p *Protocol) writeFast(w *bitio.Writer, h *Header) bool {
	if h.Open || h.Close || h.ChIndex >= fastPacked || h.Name.Text != "" || h.Name.Index >= fastPacked {
		return false
	}
	v, n := b2u(h.ReplicationPaused)<<1|b2u(h.Reliable)<<2, 3
	v, n = addPacked(v, n, h.ChIndex)
	v, n = add(v, n, b2u(h.HasPackageMapExports)|b2u(h.HasMustBeMappedGUIDs)<<1|b2u(h.Partial)<<2, 3)
	if h.Reliable {
		space := p.Sequences()
		v, n = add(v, n, uint64(h.WireSeq&space.Mask()), int(space))
	}
	if h.Partial {
		v, n = add(v, n, b2u(h.PartialInitial), 1)
		if p.CustomExportsFinal {
			v, n = add(v, n, b2u(h.PartialCustomExportsFinal), 1)
		}
		v, n = add(v, n, b2u(h.PartialFinal), 1)
	}
	if h.Reliable {
		v, n = add(v, n, 1, 1)
		v, n = addPacked(v, n, h.Name.Index)
	}
	length := p.LengthBits(h.Bits)
	if uint64(h.Bits) >= uint64(p.PacketBytes()*8) || n+length > 64 {
		return false
	}
	w.WriteBits(add(v, n, uint64(h.Bits), length))
	return true
}

// add puts the size bits of x behind the n bits of v. There are fewer than 64 of those, but in a header that is too long to be written.
func add(v uint64, n int, x uint64, size int) (uint64, int) { return v | x<<(n&63), n + size }

func addPacked(v uint64, n int, x uint32) (uint64, int) {
	if x < 1<<7 {
		return add(v, n, uint64(x)<<1, 8)
	}
	return add(v, n, uint64(x&0x7f<<1|1|x>>7<<9), 16)
}

// readFast reads such a header, or nothing and says so.
func (p *Protocol) readFast(r *bitio.Reader, h *Header) bool {
	v, ok := r.Peek64()
	if !ok || v&1 != 0 {
		return false
	}
	h.ReplicationPaused, h.Reliable = v&2 != 0, v&4 != 0
	v, left := v>>3, 64-3
	if h.ChIndex, v, left, ok = takePacked(v, left); !ok {
		return false
	}
	h.HasPackageMapExports, h.HasMustBeMappedGUIDs, h.Partial = v&1 != 0, v&2 != 0, v&4 != 0
	v, left = v>>3, left-3
	if h.Reliable {
		space := p.Sequences()
		h.WireSeq = uint16(v) & space.Mask()
		v, left = v>>(space&63), left-int(space)
	}
	if h.Partial {
		h.PartialInitial = v&1 != 0
		v, left = v>>1, left-1
		if p.CustomExportsFinal {
			h.PartialCustomExportsFinal = v&1 != 0
			v, left = v>>1, left-1
		}
		h.PartialFinal = v&1 != 0
		v, left = v>>1, left-1
	}
	if h.Reliable {
		if v&1 == 0 {
			return false
		}
		if h.Name.Index, v, left, ok = takePacked(v>>1, left-1); !ok {
			return false
		}
	}
	limit := uint64(p.PacketBytes() * 8)
	length := bits.Len64(limit - 1)
	top := uint64(1) << ((length - 1) & 63)
	size := v & (2*top - 1)
	if size&(top-1)+top >= limit { // the highest bit is there only if it could be set
		size &= top - 1
		length--
	}
	if left < length {
		return false
	}
	h.Bits = int(size)
	r.Skip(64 - left + length)
	return true
}

// takePacked takes a packed number from the left bits of v.
func takePacked(v uint64, left int) (x uint32, rest uint64, bits int, ok bool) {
	if v&1 == 0 {
		return uint32(v) >> 1 & 0x7f, v >> 8, left - 8, true
	}
	return uint32(v)>>1&0x7f | uint32(v)>>9&0x7f<<7, v >> 16, left - 16, v>>8&1 == 0
}
