package layout

import (
	"bytes"
	"errors"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// ErrLength is a length that is over its bound, or longer than what follows.
var ErrLength = errors.New("layout: a length over its bound")

// maxBlob bounds a value that isn't numbers, in bytes.
const maxBlob = 8 << 10

// Shadow is the values of an object as they were compared last, in the form in which they are
// sent. It is what connections share: one compare a tick serves them all.
type Shadow struct {
	Words []uint64
	blobs []blob
	own   Generated // the object, when there is generated code
	// Stamp is what the next Compare's changes are, of those of the object, from 1 on. Groups keep it.
	Stamp int64
	// Unfit is the units whose value at the last compare doesn't fit. Numbers are sent as the nearest that does, NaN as 0; of
	// others what fitted last stays.
	Unfit Mask
}

type blob struct {
	text string // of a String
	data []byte // of others; of a Fast while it is frozen
	bits int
	fast FastArray
	key  uint32

	group *groupShadow
}

// smallWords is how many numbers lie beside their shadow, where they are found without another wait for memory.
const smallWords = 8

// NewShadow is the shadow of an object whose values are all zero.
func (l *Layout) NewShadow() *Shadow {
	if l.words > smallWords || l.Groups != 0 {
		s := &Shadow{Words: make([]uint64, l.words), blobs: make([]blob, l.blobs)}
		for m := l.Groups; m != 0; m &= m - 1 {
			u := &l.Units[bits.TrailingZeros64(m)]
			s.blobs[u.blob].group = &groupShadow{words: make([]uint64, u.words), changed: make([]int64, len(u.Parts))}
		}
		return s
	}
	s := &struct {
		Shadow
		small [smallWords]uint64
	}{}
	s.Words, s.blobs = s.small[:l.words:l.words], make([]blob, l.blobs)
	return &s.Shadow
}

// Compare brings the units of m in s up to date with the object at obj and returns which changed. A Shadow is always of
// the same object.
func (l *Layout) Compare(s *Shadow, obj unsafe.Pointer, m Mask) (changed Mask) {
	if own := m & l.compared; own != 0 {
		if s.own == nil {
			s.own = reflect.NewAt(l.Type, obj).Interface().(Generated)
		}
		changed = s.own.NetCompare(s.Words, own)
		m &^= own
		l.note(s, changed&l.ranged)
	}
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		u := &l.Units[i]
		if u.Kind == Group {
			if differs, fits := u.compareGroup(s.blobs[u.blob].group, obj, max(s.Stamp, 1)); differs {
				changed |= 1 << i
				s.setUnfit(1<<i, !fits)
			}
			continue
		}
		if u.Kind.IsBlob() {
			differs, fits := l.compareBlob(u, &s.blobs[u.blob], obj)
			if differs {
				changed |= 1 << i
			}
			s.setUnfit(1<<i, !fits)
			continue
		}
		if words := s.Words[u.first : u.first+int(u.N)]; u.load(obj, words) {
			changed |= 1 << i
			if l.ranged>>i&1 != 0 {
				s.setUnfit(1<<i, !u.fits(words))
			}
		}
	}
	return changed
}

// Differs is the units of m whose values in the object at obj are others than those in s, as far as they fit. It changes nothing.
func (l *Layout) Differs(s *Shadow, obj unsafe.Pointer, m Mask) (differ Mask) {
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		u := &l.Units[i]
		differs := false
		switch {
		case u.Kind == String:
			text := *(*string)(unsafe.Add(obj, u.offsets[0]))
			differs = text != s.blobs[u.blob].text && u.check(obj) == nil
		case u.Kind == Group:
			differs = slices.ContainsFunc(u.Parts, func(p Unit) bool { return p.differs(s.blobs[u.blob].group.words, obj) })
		case u.Kind == Fast:
			differs = u.pointer(obj).Interface().(FastArray).NetKey() != s.blobs[u.blob].key
		case u.Kind.IsBlob():
			b, w := &s.blobs[u.blob], l.blobWriter()
			differs = u.writeChecked(w, obj) == nil && (b.bits != w.Len() || !bytes.Equal(b.data, w.Bytes()))
		default:
			differs = u.differs(s.Words, obj)
		}
		if differs {
			differ |= 1 << i
		}
	}
	return differ
}

// differs reports whether the unit's numbers in the object at obj are others than those among words.
func (u *Unit) differs(words []uint64, obj unsafe.Pointer) bool {
	var now [MaxNumbers]uint64
	u.load(obj, now[:u.N])
	return !slices.Equal(now[:u.N], words[u.first:u.first+int(u.N)])
}

// Concurrent reports whether objects of the Layout may be compared at the same time: all units are numbers and strings.
// Comparing others runs code of the game and needs memory of the Layout.
func (l *Layout) Concurrent() bool { return !l.alone }

// note looks whether numbers that have changed fit.
func (l *Layout) note(s *Shadow, m Mask) {
	for ; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		s.setUnfit(m&-m, !u.fits(s.Words[u.first:u.first+int(u.N)]))
	}
}

func (s *Shadow) setUnfit(m Mask, on bool) {
	if on {
		s.Unfit |= m
	} else {
		s.Unfit &^= m
	}
}

func (l *Layout) compareBlob(u *Unit, b *blob, obj unsafe.Pointer) (differs, fits bool) {
	switch u.Kind {
	case String:
		s := *(*string)(unsafe.Add(obj, u.offsets[0]))
		if s == b.text {
			return false, true
		}
		if u.check(obj) != nil {
			return false, false
		}
		b.text = s
		return true, true
	case Fast:
		if b.fast == nil {
			b.fast = u.pointer(obj).Interface().(FastArray)
		}
		key := b.fast.NetKey()
		if key == b.key {
			return false, true
		}
		b.key = key
		return true, true
	}
	w := l.blobWriter()
	if u.writeChecked(w, obj) != nil {
		return false, false
	}
	if b.bits == w.Len() && bytes.Equal(b.data, w.Bytes()) {
		return false, true
	}
	b.data, b.bits = append(b.data[:0], w.Bytes()...), w.Len()
	return true, true
}

// NonZero is the units whose value in s isn't zero: what a new object must be told.
func (l *Layout) NonZero(s *Shadow) (m Mask) {
	for i := range l.Units {
		u := &l.Units[i]
		if u.Kind.IsBlob() {
			b := &s.blobs[u.blob]
			if u.Kind == Group {
				if slices.ContainsFunc(b.group.changed, func(at int64) bool { return at > 0 }) {
					m |= 1 << i
				}
				continue
			}
			if b.text != "" || b.bits > 8 || b.bits > 0 && b.data[0] != 0 || b.key != 0 {
				m |= 1 << i
			}
		} else if or(s.Words[u.first:u.first+int(u.N)]) != 0 {
			m |= 1 << i
		}
	}
	return m
}

// Keys is the version of each fast array in s, by the order of the units; the first n of them.
func (l *Layout) Keys(s *Shadow, keys []uint32) {
	n := 0
	for m := l.Fasts; m != 0 && n < len(keys); m &= m - 1 {
		keys[n] = s.blobs[l.Units[bits.TrailingZeros64(m)].blob].key
		n++
	}
}

// Number is the first number of a unit as it is in s.
func (l *Layout) Number(s *Shadow, unit int) uint64 { return s.Words[l.Units[unit].first] }

// FastIndex is which of the fast arrays a unit is.
func (l *Layout) FastIndex(unit int) int { return bits.OnesCount64(l.Fasts & (1<<unit - 1)) }

// Base is what a connection is known to have of an object.
type Base struct {
	// Past is its numbers at earlier times.
	*Past
	// Keys is the versions of the fast arrays.
	Keys [MaxFast]uint32
	// Known is, for each group, the number of the newest change that the connection has. nil: it has none.
	Known []int64
}

// MaxFast is the most fast arrays in a class.
const MaxFast = 2

// WriteUnit writes one unit as it is in s. base may be nil. Predict has been called for it when it has predicted units.
func (l *Layout) WriteUnit(w *bitio.Writer, s *Shadow, i int, base *Base) {
	u := &l.Units[i]
	switch {
	case u.Kind.IsBlob():
		l.writeBlob(w, u, &s.blobs[u.blob], i, base)
	case base == nil || base.Past == nil || base.Mask>>i&1 == 0:
		u.write(w, s.Words[u.first:][:u.N])
	case base.Predicted>>i&1 != 0:
		base.near[i].write(w)
	default:
		u.writeDelta(w, s.Words[u.first:][:u.N], base.newest(u.kept)[:])
	}
}

func (l *Layout) writeBlob(w *bitio.Writer, u *Unit, b *blob, i int, base *Base) {
	switch u.Kind {
	case String:
		writeText(w, b.text)
		return
	case Fast:
		l.writeFast(w, b, l.FastIndex(i), base)
		return
	case Group:
		known := int64(0)
		switch {
		case base != nil && base.Known != nil:
			known = base.Known[l.GroupIndex(i)]
		case l.Zeros:
			known = -1
		}
		u.writeGroup(w, b.group, known)
		return
	}
	w.WriteIntPacked(uint32(b.bits))
	w.WriteBitsFrom(b.data, 0, b.bits)
}

// Freeze has WriteUnit write the fast arrays of m as they are now, and whole, until Thaw. It returns those that have changed since they were compared.
func (l *Layout) Freeze(s *Shadow, m Mask) (changed Mask) {
	for m &= l.Fasts; m != 0; m &= m - 1 {
		b := &s.blobs[l.Units[bits.TrailingZeros64(m)].blob]
		if b.fast == nil {
			continue // nobody has any of it
		}
		w := bitio.NewWriter(make([]byte, 1<<fastLength/8))
		b.fast.NetWrite(w, 0)
		b.data, b.bits = bytes.Clone(w.Bytes()), w.Len()
		if key := b.fast.NetKey(); key != b.key {
			b.key = key
			changed |= m & -m
		}
	}
	return changed
}

// Thaw ends Freeze.
func (l *Layout) Thaw(s *Shadow, m Mask) {
	for m &= l.Fasts; m != 0; m &= m - 1 {
		b := &s.blobs[l.Units[bits.TrailingZeros64(m)].blob]
		b.data, b.bits = nil, 0
	}
}

// Newer is the fast arrays of m that have changed since they were compared. WriteUnit writes them as they are now.
func (l *Layout) Newer(s *Shadow, m Mask) (newer Mask) {
	for m &= l.Fasts; m != 0; m &= m - 1 {
		b := &s.blobs[l.Units[bits.TrailingZeros64(m)].blob]
		if b.fast != nil && b.data == nil && b.fast.NetKey() != b.key {
			newer |= m & -m
		}
	}
	return newer
}

// writeFast writes a fast array with its length in bits before it, so that it can be skipped.
func (l *Layout) writeFast(w *bitio.Writer, b *blob, index int, base *Base) {
	key := uint32(0)
	if base != nil {
		key = base.Keys[index]
	}
	if b.data != nil {
		w.WriteBits(uint64(b.bits), fastLength)
		w.WriteBitsFrom(b.data, 0, b.bits)
		return
	}
	at := w.Len()
	w.WriteBits(0, fastLength)
	from := w.Len()
	b.fast.NetWrite(w, key)
	n := w.Len() - from
	if n >= 1<<fastLength {
		w.WriteString("\x00") // a writer's error: it doesn't fit
		return
	}
	if w.Err() == nil {
		w.PatchBits(at, uint64(n), fastLength)
	}
}

const fastLength = 17 // bits; up to 16 KiB
