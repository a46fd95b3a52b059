package layout

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A class has a bit in its masks for each unit, 64 at most. What is more than that goes into groups: units that have one bit
// together, and a mask of their own on the wire. A group knows at which of the actor's changes each of its parts changed last, and a
// connection up to which change it has the group; what is sent is the parts that changed since. So a class without groups pays
// nothing for them, a lost record needs no list of its parts, and parts that changed in the last round trip go again with the next.
//
// Groups hold numbers. An array of more than groupedArray plain numbers is one always. Of a class with more than 64 units the
// numbers without a delta form go into others, those without a notify first, from the last field on, as many as it takes.
const (
	// MaxParts is the most units of a class, the parts of its groups counted.
	MaxParts = 1024

	groupedArray = 4  // elements of an array that isn't a group
	groupParts   = 64 // parts of a group that isn't an array
)

// group is the form of a leaf's group while they are formed.
type grouping struct {
	l       *Layout
	of      []int // by leaf: its group, or -1
	sizes   []int // of the groups
	singles int   // leaves without a group
}

// group puts leaves into groups, so that 64 units are left.
func (l *Layout) group() error {
	if len(l.Units) > MaxParts {
		return fmt.Errorf("%w (%d in %v)", ErrMany, len(l.Units), l.Type)
	}
	g := grouping{l: l, of: slices.Repeat([]int{-1}, len(l.Units)), singles: len(l.Units)}
	g.arrays()
	for _, worth := range []func(u *Unit) bool{
		func(u *Unit) bool { return !u.HasDelta() && !l.notifies(u) },
		func(u *Unit) bool { return !u.HasDelta() },
		func(*Unit) bool { return true },
	} {
		g.collect(worth)
	}
	if g.units() > MaxUnits {
		return fmt.Errorf("%w (%d in %v, when numbers are put together)", ErrMany, g.units(), l.Type)
	}
	g.form()
	return nil
}

func (g *grouping) units() int { return g.singles + len(g.sizes) }

func (g *grouping) join(leaf, group int) {
	g.of[leaf] = group
	g.sizes[group]++
	g.singles--
}

// arrays makes a group of each array of plain numbers.
func (g *grouping) arrays() {
	units := g.l.Units
	for i := 0; i < len(units); {
		n := 1
		for i+n < len(units) && units[i].array != 0 && units[i+n].array == units[i].array {
			n++
		}
		if n > groupedArray && !slices.ContainsFunc(units[i:i+n], func(u Unit) bool { return !u.groupable() || u.HasDelta() }) {
			g.sizes = append(g.sizes, 0)
			for j := i; j < i+n; j++ {
				g.join(j, len(g.sizes)-1)
			}
		}
		i += n
	}
}

func (u *Unit) groupable() bool { return !u.Kind.IsBlob() && u.Kind != Ref && u.Kind != Quat }

// collect puts leaves for which it is worth into groups by their condition, while there are too many units. Fields of the custom
// condition are switched one by one, and have groups of their own.
func (g *grouping) collect(worth func(u *Unit) bool) {
	type key struct {
		c        Condition
		netGroup string
		field    int
	}
	last := map[key]int{}
	for i := len(g.of) - 1; i >= 0 && g.units() > MaxUnits; i-- {
		u := &g.l.Units[i]
		if g.of[i] >= 0 || !u.groupable() || !worth(u) {
			continue
		}
		k := key{c: u.Condition, netGroup: u.NetGroup}
		if u.Condition == CustomCondition {
			k.field = 1 + u.Field
		}
		n, ok := last[k]
		if !ok || g.sizes[n] >= groupParts {
			n = len(g.sizes)
			g.sizes = append(g.sizes, 0)
			last[k] = n
		}
		g.join(i, n)
	}
}

// form makes the units: leaves and groups in the order of their first leaf.
func (g *grouping) form() {
	leaves := g.l.Units
	g.l.bits = make([]uint8, len(leaves))
	if len(g.sizes) == 0 {
		for i := range leaves {
			g.l.bits[i] = uint8(i)
		}
		return
	}
	units, at := []Unit(nil), slices.Repeat([]int{-1}, len(g.sizes))
	for i := range leaves {
		n := g.of[i]
		switch {
		case n < 0:
			g.l.bits[i] = uint8(len(units))
			units = append(units, leaves[i])
			continue
		case at[n] < 0:
			at[n] = len(units)
			units = append(units, Unit{Wire: Wire{Kind: Group}, Field: leaves[i].Field, Condition: leaves[i].Condition, NetGroup: leaves[i].NetGroup, Number: leaves[i].Number})
		}
		u := &units[at[n]]
		leaf := leaves[i]
		leaf.first = u.words
		u.words += int(leaf.N)
		u.Parts = append(u.Parts, leaf)
		g.l.bits[i] = uint8(at[n])
	}
	for _, i := range at {
		u := &units[i]
		if u.Path = u.Parts[0].Path; len(u.Parts) > 1 {
			u.Path = fmt.Sprintf("%s and %d more", u.Path, len(u.Parts)-1)
		}
	}
	g.l.Units = units
}

// notifies reports whether a unit's field has a notify.
func (l *Layout) notifies(u *Unit) bool {
	return u.Field < len(l.Fields) && l.Fields[u.Field].Notify != ""
}

// Leaves calls yield for each unit that is no group and each part of one.
func (l *Layout) Leaves(yield func(*Unit) bool) {
	for i := range l.Units {
		u := &l.Units[i]
		if u.Kind != Group {
			if !yield(u) {
				return
			}
			continue
		}
		for j := range u.Parts {
			if !yield(&u.Parts[j]) {
				return
			}
		}
	}
}

// groupShadow is the parts of a group as they were compared last.
type groupShadow struct {
	words   []uint64
	changed []int64 // at which of the object's changes each part did last; 0 never
}

// compareGroup finds which parts have changed; fits is whether all parts can be sent as they are, if any has.
func (u *Unit) compareGroup(g *groupShadow, obj unsafe.Pointer, stamp int64) (differs, fits bool) {
	for i := range u.Parts {
		p := &u.Parts[i]
		if p.load(obj, g.words[p.first:p.first+int(p.N)]) {
			g.changed[i], differs = stamp, true
		}
	}
	if !differs {
		return false, false
	}
	for i := range u.Parts {
		p := &u.Parts[i]
		if !p.fits(g.words[p.first : p.first+int(p.N)]) {
			return true, false
		}
	}
	return true, true
}

// Touch has all parts of the groups of m count as changed with the object's next change.
func (l *Layout) Touch(s *Shadow, m Mask, stamp int64) {
	for m &= l.Groups; m != 0; m &= m - 1 {
		changed := s.blobs[l.Units[bits.TrailingZeros64(m)].blob].group.changed
		for i := range changed {
			changed[i] = stamp
		}
	}
}

// write writes the parts that changed after the object's change known; all when that is below 0.
func (u *Unit) writeGroup(w *bitio.Writer, g *groupShadow, known int64) {
	for from := 0; from < len(u.Parts); from += 64 {
		n, m := min(len(u.Parts)-from, 64), Mask(0)
		for i, at := range g.changed[from : from+n] {
			if at > known {
				m |= 1 << i
			}
		}
		writePartMask(w, m, n)
	}
	for i := range u.Parts {
		if p := &u.Parts[i]; g.changed[i] > known {
			p.write(w, g.words[p.first:p.first+int(p.N)])
		}
	}
}

// The mask of 64 parts, or of the rest, is
//
//	1  set: a bit a part; else 4 how many are set, and the place of each
const listBits = 4

func writePartMask(w *bitio.Writer, m Mask, n int) {
	place, set := bits.Len(uint(n-1)), bits.OnesCount64(m)
	whole := set >= 1<<listBits || listBits+set*place > n
	w.WriteBool(whole)
	if whole {
		w.WriteBits(m, n)
		return
	}
	w.WriteBits(uint64(set), listBits)
	for ; m != 0; m &= m - 1 {
		w.WriteBits(uint64(bits.TrailingZeros64(m)), place)
	}
}

func readPartMask(r *bitio.Reader, n int) (m Mask) {
	if r.ReadBool() {
		return r.ReadBits(n)
	}
	place := bits.Len(uint(n - 1))
	for range r.ReadBits(listBits) {
		i := r.ReadBits(place)
		if i >= uint64(n) {
			r.Fail(ErrLength)
			return 0
		}
		m |= 1 << i
	}
	return m
}

// writeParts writes all parts straight from an object, as a value that is whole always.
func (u *Unit) writeParts(w *bitio.Writer, obj unsafe.Pointer) {
	var v [MaxNumbers]uint64
	for i := range u.Parts {
		p := &u.Parts[i]
		p.load(obj, v[:p.N])
		p.write(w, v[:p.N])
	}
}

// readParts reads them.
func (u *Unit) readParts(r *bitio.Reader, obj unsafe.Pointer) {
	var v [MaxNumbers]uint64
	for i := range u.Parts {
		p := &u.Parts[i]
		p.read(r, v[:p.N])
		p.store(&p.Wire, obj, v[:p.N])
	}
}

// GroupIndex is which of the groups a unit is.
func (l *Layout) GroupIndex(unit int) int { return bits.OnesCount64(l.Groups & (1<<unit - 1)) }

// ReadGroup reads the parts of unit i that came, as ReadUnit reads units that are no groups. before is called for a part of ours
// before it is set, and after with whether it differs and fits; o's zero value is no object, and then neither is.
func (m *Remote) ReadGroup(r *bitio.Reader, i int, o Object, before func(own *Unit), after func(own *Unit, changed, fits bool)) {
	if o.ptr != nil && o.layout != m.local {
		r.Fail(ErrObject)
		return
	}
	u := &m.Units[i]
	var masks [MaxParts / 64]Mask
	for from := 0; from < len(u.Parts); from += 64 {
		masks[from/64] = readPartMask(r, min(len(u.Parts)-from, 64))
	}
	var v, old, now [MaxNumbers]uint64
	for j := range u.Parts {
		if masks[j/64]>>(j%64)&1 == 0 {
			continue
		}
		p := &u.Parts[j]
		p.read(r, v[:p.N])
		if r.Err() != nil || p.own == nil || o.ptr == nil {
			continue
		}
		before(p.own)
		p.own.load(o.ptr, old[:p.N])
		fits := p.own.store(&p.Wire, o.ptr, v[:p.N])
		p.own.load(o.ptr, now[:p.N])
		after(p.own, old != now, fits)
		old, now = [MaxNumbers]uint64{}, [MaxNumbers]uint64{}
	}
}
