package layout

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Kind is the form in which a unit is sent.
type Kind uint8

// The kinds.
const (
	Bool Kind = iota
	Int
	Uint
	Max
	Step
	Angle
	Quat
	Float32
	Float64
	Ref
	String
	Bytes
	Slice
	Custom
	Fast
	Pointer
	Group
	kinds
)

// String is the kind's name.
func (k Kind) String() string {
	names := [...]string{"bool", "int", "uint", "max", "step", "angle", "quaternion", "float32", "float64", "reference", "string", "bytes", "slice", "custom", "fast array", "pointer", "group"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// IsBlob reports whether the unit isn't numbers.
func (k Kind) IsBlob() bool { return k >= String }

// MaxNumbers is the most numbers in a unit.
const MaxNumbers = 4

// Wire is how a unit is written.
type Wire struct {
	Kind Kind
	// N is how many numbers, 1 to MaxNumbers; 0 for what isn't numbers.
	N uint8
	// Bits is the width of an Angle, or of each number of a Quat.
	Bits uint8
	// Max is the largest value of a Max, or the most elements of a String, Bytes or Slice.
	Max uint32
	// Step is that of a Step.
	Step float64
}

const (
	absWidth   = 6
	deltaWidth = 4
	escape     = 1<<deltaWidth - 1
)

// HasDelta reports whether a baseline makes the unit smaller.
func (d *Wire) HasDelta() bool { return d.Kind == Step || d.Kind == Angle || d.Kind == Quat }

// hasForm reports whether there is more to know of the unit than its Wire.
func (d *Wire) hasForm() bool {
	return d.Kind == Slice || d.Kind == Pointer || d.Kind == Custom || d.Kind == Fast
}

// minBits is the least that a whole unit takes within an element; what has methods to serialize it may take nothing.
func (u *Unit) minBits() (least int) {
	switch {
	case u.codec != nil:
		return u.codec.least
	case u.Kind != Group:
		return u.Wire.minBits()
	}
	for i := range u.Parts {
		least += u.Parts[i].minBits()
	}
	return least
}

// minBits is that of a unit that is no group and has no codec.
func (d *Wire) minBits() int {
	switch d.Kind {
	case Bool, Pointer:
		return 1
	case Max:
		return bits.Len32(d.Max) - 1
	case Step:
		return absWidth
	case Angle:
		return int(d.N) * int(d.Bits)
	case Quat:
		return 2 + 3*int(d.Bits)
	case Float32:
		return int(d.N) * 32
	case Float64:
		return int(d.N) * 64
	case Custom, Fast:
		return 0
	}
	return 8 // a packed number, or a packed length
}

// write writes the numbers of a unit.
func (d *Wire) write(w *bitio.Writer, v []uint64) {
	switch d.Kind {
	case Bool:
		w.WriteBits(v[0], 1)
	case Max:
		w.WriteInt(uint32(min(v[0], uint64(d.Max))), d.Max+1)
	case Step:
		width := bits.Len64(or(v))
		w.WriteBits(uint64(width), absWidth)
		writeEach(w, v, width)
	case Angle:
		writeEach(w, v, int(d.Bits))
	case Quat:
		d.writeQuat(w, v)
	case Float32:
		writeEach(w, v, 32)
	case Float64:
		writeEach(w, v, 64)
	default:
		w.WriteIntPacked64(v[0])
	}
}

// writeDelta writes numbers as differences to what base is kept as, or whole when that is too far.
func (d *Wire) writeDelta(w *bitio.Writer, v, base []uint64) {
	if d.Kind == Quat {
		d.writeQuatDelta(w, v, base)
		return
	}
	var diff [MaxNumbers]uint64
	for i := range v {
		diff[i] = d.difference(v[i], base[i])
	}
	width := bits.Len64(or(diff[:len(v)]))
	if width >= escape {
		w.WriteBits(escape, deltaWidth)
		d.write(w, v)
		return
	}
	w.WriteBits(uint64(width), deltaWidth)
	writeEach(w, diff[:len(v)], width)
}

// difference is v against what base is kept as, in zigzag; angles go the shorter way around.
func (d *Wire) difference(v, base uint64) uint64 {
	return zigzag(int64(d.integer(v)-base) >> (d.shift() & 63))
}

// differences is how far off the numbers of a unit that is no rotation were expected, as they are kept.
func (d *Wire) differences(v []uint64, guess *[MaxNumbers]int64, errors *[MaxNumbers]uint64) {
	if d.Kind == Angle {
		shift := d.shift() & 63
		for j, w := range v {
			errors[j&3] = zigzag((int64(w<<shift) - guess[j&3]) >> shift)
		}
		return
	}
	for j, w := range v {
		errors[j&3] = zigzag(unzigzag(w) - guess[j&3])
	}
}

// deltaBits is what writeDelta takes.
func (d *Wire) deltaBits(v, base []uint64) int {
	if d.Kind == Quat {
		return d.quatDeltaBits(v, base)
	}
	all, base := uint64(0), base[:len(v)]
	if d.Kind == Angle {
		shift := d.shift() & 63
		for i, w := range v {
			all |= zigzag(int64(w<<shift-base[i]) >> shift)
		}
	} else {
		for i, w := range v {
			all |= zigzag(unzigzag(w) - int64(base[i]))
		}
	}
	width := bits.Len64(all)
	if width >= escape {
		return 64 * len(v)
	}
	return deltaWidth + width*len(v)
}

// add is the reverse.
func (d *Wire) add(base, diff uint64) uint64 {
	return d.word(base + uint64(unzigzag(diff))<<(d.shift()&63))
}

func (d *Wire) read(r *bitio.Reader, v []uint64) {
	switch d.Kind {
	case Bool:
		v[0] = r.ReadBits(1)
	case Max:
		v[0] = uint64(r.ReadInt(d.Max + 1))
	case Step:
		readEach(r, v, int(r.ReadBits(absWidth)))
	case Angle:
		readEach(r, v, int(d.Bits))
	case Quat:
		d.readQuat(r, v)
	case Float32:
		readEach(r, v, 32)
	case Float64:
		readEach(r, v, 64)
	default:
		v[0] = r.ReadIntPacked64()
	}
}

func (d *Wire) readDelta(r *bitio.Reader, v, base []uint64) {
	if d.Kind == Quat {
		d.readQuatDelta(r, v, base)
		return
	}
	width := int(r.ReadBits(deltaWidth))
	if width == escape {
		d.read(r, v)
		return
	}
	for i := range v {
		v[i] = d.add(base[i], r.ReadBits(width))
	}
}

func or(v []uint64) (all uint64) {
	for _, x := range v {
		all |= x
	}
	return all
}

func writeEach(w *bitio.Writer, v []uint64, width int) {
	for _, x := range v {
		w.WriteBits(x, width)
	}
}

func readEach(r *bitio.Reader, v []uint64, width int) {
	for i := range v {
		v[i] = r.ReadBits(width)
	}
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// fromAngle is a part of a turn in degrees.
func fromAngle(v uint64, bits uint8) float64 { return float64(v) * 360 / float64(uint64(1)<<bits) }
