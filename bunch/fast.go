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
	v := b2u(h.ReplicationPaused)<<1 | b2u(h.Reliable)<<2
	n := 3
	v, n = addPacked(v, n, h.ChIndex)
	v |= (b2u(h.HasPackageMapExports) | b2u(h.HasMustBeMappedGUIDs)<<1 | b2u(h.Partial)<<2) << n
	n += 3
	if h.Reliable {
		space := p.Sequences()
		v |= uint64(h.WireSeq&space.Mask()) << n
		n += int(space)
	}
	if h.Partial {
		v |= b2u(h.PartialInitial) << n
		n++
		if p.CustomExportsFinal {
			v |= b2u(h.PartialCustomExportsFinal) << n
			n++
		}
		v |= b2u(h.PartialFinal) << n
		n++
	}
	if h.Reliable {
		v |= 1 << n
		v, n = addPacked(v, n+1, h.Name.Index)
	}
	length := p.LengthBits(h.Bits)
	if uint64(h.Bits) >= uint64(p.PacketBytes()*8) || n+length > 64 {
		return false
	}
	w.WriteBits(v|uint64(h.Bits)<<n, n+length)
	return true
}

func addPacked(v uint64, n int, x uint32) (uint64, int) {
	if x < 1<<7 {
		return v | uint64(x)<<1<<n, n + 8
	}
	return v | uint64(x&0x7f<<1|1|x>>7<<9)<<n, n + 16
}

// readFast reads such a header, or nothing and says so.
func (p *Protocol) readFast(r *bitio.Reader, h *Header) bool {
	v, ok := r.Peek64()
	if !ok || v&1 != 0 {
		return false
	}
	h.ReplicationPaused, h.Reliable = v&2 != 0, v&4 != 0
	n := 3
	if h.ChIndex, n, ok = takePacked(v, n); !ok {
		return false
	}
	flags := v >> n
	h.HasPackageMapExports, h.HasMustBeMappedGUIDs = flags&1 != 0, flags&2 != 0
	h.Partial = flags&4 != 0
	n += 3
	if h.Reliable {
		space := p.Sequences()
		h.WireSeq = uint16(v>>n) & space.Mask()
		n += int(space)
	}
	if h.Partial {
		h.PartialInitial = v>>n&1 != 0
		n++
		if p.CustomExportsFinal {
			h.PartialCustomExportsFinal = v>>n&1 != 0
			n++
		}
		h.PartialFinal = v>>n&1 != 0
		n++
	}
	if h.Reliable {
		if v>>n&1 == 0 {
			return false
		}
		if h.Name.Index, n, ok = takePacked(v, n+1); !ok {
			return false
		}
	}
	limit := uint64(p.PacketBytes() * 8)
	length := bits.Len64(limit - 1)
	top := uint64(1) << (length - 1)
	size := v >> n & (2*top - 1)
	if size&(top-1)+top >= limit { // the highest bit is there only if it could be set
		size &= top - 1
		length--
	}
	if n+length > 64 {
		return false
	}
	h.Bits = int(size)
	r.Skip(n + length)
	return true
}

func takePacked(v uint64, n int) (uint32, int, bool) {
	x := uint32(v >> n)
	if x&1 == 0 {
		return x >> 1 & 0x7f, n + 8, true
	}
	return x>>1&0x7f | x>>9&0x7f<<7, n + 16, x>>8&1 == 0
}
