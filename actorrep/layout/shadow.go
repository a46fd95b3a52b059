package layout

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Shadow is the values of an object as they were compared last, in the form in which they are
// sent. It is what connections share: one compare a tick serves them all.
type Shadow struct {
	words   []uint64
	strings []string
}

// NewShadow is the shadow of an object whose values are all zero.
func (l *Layout) NewShadow() *Shadow {
	return &Shadow{make([]uint64, len(l.Leaves)), make([]string, l.strings)}
}

// Compare brings s up to date with the object at obj and returns what changed.
func (l *Layout) Compare(s *Shadow, obj unsafe.Pointer) (changed Mask) {
	for i := range l.Leaves {
		f := &l.Leaves[i]
		p := unsafe.Add(obj, f.offset)
		if f.kind == kindString {
			if v := *(*string)(p); v != s.strings[f.str] {
				s.strings[f.str] = v
				changed |= 1 << i
			}
			continue
		}
		if v := f.load(p); v != s.words[i] {
			s.words[i] = v
			changed |= 1 << i
		}
	}
	return changed
}

// load is a value as the integer it is sent as.
func (f *Leaf) load(p unsafe.Pointer) uint64 {
	switch f.kind {
	case kindBool:
		if *(*bool)(p) {
			return 1
		}
		return 0
	case kindGUID:
		return uint64(*(*uint32)(p))
	case kindInt:
		return zigzag(f.loadInt(p))
	case kindUint:
		return f.loadUint(p)
	case kindMax:
		return min(f.loadUint(p), uint64(f.max))
	case kindStep:
		v := *(*float64)(p)
		if f.size == 4 {
			v = float64(*(*float32)(p))
		}
		return f.quantize(v)
	case kindFloat32:
		return uint64(*(*uint32)(p))
	default:
		return *(*uint64)(p)
	}
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// quantize is the number of steps nearest to v; NaN is 0, and what a step can't count is cut.
func (f *Leaf) quantize(v float64) uint64 {
	n := math.RoundToEven(v / f.step)
	const limit = 1 << 52
	switch {
	case n != n:
		n = 0
	case n > limit:
		n = limit
	case n < -limit:
		n = -limit
	}
	return zigzag(int64(n))
}

func (f *Leaf) loadInt(p unsafe.Pointer) int64 {
	switch f.size {
	case 1:
		return int64(*(*int8)(p))
	case 2:
		return int64(*(*int16)(p))
	case 4:
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

func (f *Leaf) loadUint(p unsafe.Pointer) uint64 {
	switch f.size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

// NonZero is the leaves whose value in s isn't zero: what a new object must be told.
func (l *Layout) NonZero(s *Shadow) (m Mask) {
	for i := range l.Leaves {
		if f := &l.Leaves[i]; s.words[i] != 0 || f.kind == kindString && s.strings[f.str] != "" {
			m |= 1 << i
		}
	}
	return m
}

// maxString bounds a replicated string, in characters.
const maxString = 1024

// Write writes the leaves of m as they are in s. A string over 1024 characters is cut.
func (l *Layout) Write(w *bitio.Writer, s *Shadow, m Mask) {
	w.WriteBits(uint64(m), len(l.Leaves))
	for rest := m; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(uint64(rest))
		f := &l.Leaves[i]
		switch f.kind {
		case kindBool:
			w.WriteBits(s.words[i], 1)
		case kindMax:
			w.WriteInt(uint32(s.words[i]), f.max+1)
		case kindFloat32:
			w.WriteBits(s.words[i], 32)
		case kindFloat64:
			w.WriteBits(s.words[i], 64)
		case kindString:
			w.WriteString(cut(s.strings[f.str]))
		default:
			w.WriteIntPacked64(s.words[i])
		}
	}
}

func cut(s string) string {
	if len(s) <= maxString {
		return s
	}
	return s[:maxString]
}

// Read sets the leaves that r holds in the object at obj and returns which. On an error the
// object may be half set; the connection ends.
func (l *Layout) Read(r *bitio.Reader, obj unsafe.Pointer) (m Mask, err error) {
	m = Mask(r.ReadBits(len(l.Leaves)))
	for rest := m; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(uint64(rest))
		f := &l.Leaves[i]
		p := unsafe.Add(obj, f.offset)
		switch f.kind {
		case kindBool:
			*(*bool)(p) = r.ReadBool()
		case kindMax:
			f.storeUint(p, uint64(r.ReadInt(f.max+1)))
		case kindFloat32:
			*(*uint32)(p) = uint32(r.ReadBits(32))
		case kindFloat64:
			*(*uint64)(p) = r.ReadBits(64)
		case kindGUID:
			*(*uint32)(p) = r.ReadIntPacked()
		case kindString:
			*(*string)(p) = r.ReadString(maxString)
		case kindInt:
			f.storeUint(p, uint64(unzigzag(r.ReadIntPacked64())))
		case kindUint:
			f.storeUint(p, r.ReadIntPacked64())
		case kindStep:
			f.storeFloat(p, float64(unzigzag(r.ReadIntPacked64()))*f.step)
		}
	}
	if r.Err() != nil {
		return m, fmt.Errorf("layout: %v: %w", l.Type, r.Err())
	}
	return m, nil
}

func (f *Leaf) storeUint(p unsafe.Pointer, v uint64) {
	switch f.size {
	case 1:
		*(*uint8)(p) = uint8(v)
	case 2:
		*(*uint16)(p) = uint16(v)
	case 4:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

func (f *Leaf) storeFloat(p unsafe.Pointer, v float64) {
	if f.size == 4 {
		*(*float32)(p) = float32(v)
	} else {
		*(*float64)(p) = v
	}
}
