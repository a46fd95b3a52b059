package wire

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A chunk is
//
//	1   0, 15 bits of the frame and 20 of the Step's time; or 1, all 32 and 48. The time is World.Now in units of 2^16 ns
//	records until the end, by rising id:
//	  id         how far it is from the last: 1 as far as that was from the one before, and the record is a plain one;
//	             01 and a distance, and it is a plain one; 001 as far; 000 and a distance, in groups of 4 bits, each before a bit that
//	             says another follows
//	  A plain record has no calls, the mask of the last of its class in the chunk and the path of the record before it, and is
//	  predicted if that has two records or more. Others go on with:
//	  calls      1, then when set 3 bits: how many less 1, then the calls
//	  mask       a bit a unit up to 6 units; else 1 "as the last of the class", or 0 and a bit a unit
//	  path       when a unit has a delta form: the records that its numbers build on, see Paths.Write
//	  predicted  1, when the path has two records or more: numbers of units that are in all of these are predicted, see
//	             layout.Past; else differences to the newest
//	  and all with:
//	  values     unit by unit; those that aren't in the newest record of the path are absolute
const (
	FrameBits = 15 // of a frame that is near one which the client is known to have
	TimeUnit  = 16 // of a Step's time: 2^16 ns
	TimeBits  = 20 // of a time that is near one which the client is known to have
	idGroup   = 4
	rawMask   = 6 // units up to which a mask is always written
)

// Chunk is what records of a chunk share with those before them.
type Chunk struct {
	Gap   uint32 // between the last two ids
	Paths Paths
}

// NewChunk is a chunk without records.
func NewChunk() Chunk { return Chunk{Gap: 1} }

// WriteTime writes the frame of a chunk, and the time of its Step. Near ones are written by their low bits.
func WriteTime(w *bitio.Writer, frame uint32, at time.Duration, near bool) {
	w.WriteBool(!near)
	if near {
		w.WriteBits(uint64(frame), FrameBits)
		w.WriteBits(uint64(at>>TimeUnit), TimeBits)
	} else {
		w.WriteUint32(frame)
		w.WriteBits(uint64(at>>TimeUnit), 64-TimeUnit)
	}
}

// ReadTime reads them: what is nearest to the newest frame and time that are known.
func ReadTime(r *bitio.Reader, known int64, knownAt time.Duration) (frame int64, at time.Duration) {
	if r.ReadBool() {
		return Extend(known, r.ReadUint32()), time.Duration(r.ReadBits(64-TimeUnit) << TimeUnit)
	}
	const shift, unused = 64 - FrameBits, 64 - TimeBits
	frame = known + (int64(r.ReadBits(FrameBits))-known)<<shift>>shift
	units := int64(knownAt >> TimeUnit)
	units += (int64(r.ReadBits(TimeBits)) - units) << unused >> unused
	return frame, time.Duration(units) << TimeUnit
}

// SkipTime skips them.
func SkipTime(r *bitio.Reader) {
	n := FrameBits + TimeBits
	if r.ReadBool() {
		n = 32 + 64 - TimeUnit
	}
	r.Skip(n)
}

// Extend is the frame with these low bits that is nearest to the newest known, 0 for none. Frames of a client count on where those of
// the wire wrap.
func Extend(known int64, low uint32) int64 {
	if known == 0 {
		return 1<<32 + int64(low)
	}
	return known + int64(int32(low-uint32(known)))
}

// WriteID writes how far an id is from the last, and whether its record is as the one before.
func WriteID(w *bitio.Writer, gap uint32, last *uint32, plain bool) {
	// The bits are written at once: three, and for each four of the gap another that says whether there are more.
	v, n, same := uint64(0), 3, gap == *last
	switch {
	case same && plain:
		w.WriteBits(1, 1)
		return
	case same:
		w.WriteBits(1<<2, 3)
		return
	case plain:
		v, n = 1<<1, 2
	}
	for *last = gap; ; {
		v |= uint64(gap&(1<<idGroup-1)) << n
		n += idGroup + 1
		if gap >>= idGroup; gap == 0 {
			w.WriteBits(v, n)
			return
		}
		v |= 1 << (n - 1)
	}
}

// ReadID reads that.
func ReadID(r *bitio.Reader, last *uint32) (gap uint32, plain bool) {
	if r.ReadBool() {
		return *last, true
	}
	plain = r.ReadBool()
	if !plain && r.ReadBool() {
		return *last, false
	}
	for shift := 0; ; shift += idGroup {
		gap |= uint32(r.ReadBits(idGroup)) << shift
		if !r.ReadBool() || shift > 28 {
			*last = gap
			return gap, plain
		}
	}
}

// WriteMask writes the units of a record, of a class with so many; last is the mask of the class's last one in the chunk.
func WriteMask(w *bitio.Writer, m uint64, last *uint64, units int) {
	if units > rawMask {
		w.WriteBool(m == *last)
		if m == *last {
			return
		}
	}
	*last = m
	w.WriteBits(m, units)
}

// ReadMask reads them.
func ReadMask(r *bitio.Reader, last *uint64, units int) uint64 {
	if units > rawMask && r.ReadBool() {
		return *last
	}
	*last = r.ReadBits(units)
	return *last
}
