package bunch

import (
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Most bunches are neither open, close nor partial, on one of the first 16384 channels, with
// a hardcoded name. Their header fits 64 bits, and is written and read as one number.
const fastPacked = 1 << 14

func pow2(v int) bool { return v&(v-1) == 0 }

// writeFast writes such a header, or nothing and says so.
func (p *Protocol) writeFast(w *bitio.Writer, h *Header) bool {
	if h.Open || h.Close || h.Partial || h.ChIndex >= fastPacked || h.Name.Text != "" || h.Name.Index >= fastPacked || !pow2(p.maxPacket()) {
		return false
	}
	v := b2u(h.ReplicationPaused)<<1 | b2u(h.Reliable)<<2
	n := 3
	v, n = addPacked(v, n, h.ChIndex)
	v |= (b2u(h.HasPackageMapExports) | b2u(h.HasMustBeMappedGUIDs)<<1) << n
	n += 3
	if h.Reliable {
		space := p.Sequences()
		v |= uint64(h.WireSeq&space.Mask()) << n
		n += int(space)
		v |= 1 << n
		v, n = addPacked(v, n+1, h.Name.Index)
	}
	length := p.LengthBits(h.Bits)
	if uint64(h.Bits) >= uint64(p.maxPacket()*8) || n+length > 64 {
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
	if !ok || v&1 != 0 || !pow2(p.maxPacket()) {
		return false
	}
	h.ReplicationPaused, h.Reliable = v&2 != 0, v&4 != 0
	n := 3
	if h.ChIndex, n, ok = takePacked(v, n); !ok {
		return false
	}
	flags := v >> n
	h.HasPackageMapExports, h.HasMustBeMappedGUIDs = flags&1 != 0, flags&2 != 0
	if flags&4 != 0 {
		return false
	}
	n += 3
	if h.Reliable {
		space := p.Sequences()
		h.WireSeq = uint16(v>>n) & space.Mask()
		n += int(space)
		if v>>n&1 == 0 {
			return false
		}
		if h.Name.Index, n, ok = takePacked(v, n+1); !ok {
			return false
		}
	}
	length := p.LengthBits(0)
	if n+length > 64 {
		return false
	}
	h.Bits = int(v >> n & (1<<length - 1))
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
