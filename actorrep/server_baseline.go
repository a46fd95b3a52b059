package actorrep

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// baseline is the newest acked record, of those that contain numbers with a delta form, and which earlier changes the
// client has.
type baseline struct {
	mask  layout.Mask
	count int64 // the number of the actor's changes up to it; -1 for no baseline
	frame uint32
	// older has a bit for each of the last changes; the lowest bit is the baseline's. A bit is set when a record arrived that was sent in
	// the Step of that change, with exactly the units that changed then and that the connection may have. Which units these
	// are is in the actor's snapshots.
	older uint32
}

var noBaseline = baseline{count: -1}

// arrived handles the ack of a record.
func (b *baseline) arrived(v *view, r *record) {
	older := uint32(0)
	if d := r.count - b.count; b.count >= 0 && d >= 0 && d < 32 {
		older = b.older << d
	}
	if s := v.b.rep.snaps; s.has(r.count) {
		i, deltas := r.count&(snapshotRing-1), v.b.class.layout.Deltas
		if s.frames[i] == r.frame && s.changed[i]&v.allowed == r.mask&deltas {
			older |= 1
		}
	}
	*b = baseline{r.mask, r.count, r.frame, older}
	v.acked = r.number
}

// maxReach is how many Steps the oldest record of a path may be behind, and how many records the newest, so that a client has kept
// them: a Step has one record of an actor at most.
const maxReach = layout.MaxRecords - 1

// basis is what the client is known to have: everything that a record's path and predictions depend on, besides the
// actor itself. The zero basis is nothing.
type basis struct {
	count          int64
	frame, older   uint32
	known, allowed layout.Mask
}

// basis is what the client is known to have of the units of m.
func (v *view) basis(frame uint32, m layout.Mask) basis {
	b := &v.base
	known := b.mask & m & v.b.class.layout.Deltas
	if age := frame - b.frame; known == 0 || age < 1 || age > layout.MaxAge || v.number-v.acked >= maxReach || !v.b.rep.snaps.has(b.count) {
		return basis{}
	}
	return basis{b.count, b.frame, b.older, known, v.allowed}
}

// path chooses the records from which a frame's numbers are predicted, and puts their numbers into past.
func (b *basis) path(frame uint32, snaps *snapshots, past *layout.Past) (t wire.Path) {
	past.Reset()
	if b.known == 0 {
		return wire.Path{}
	}
	age := int(frame - b.frame)
	past.History, past.At[0], past.Mask, past.Age = &snaps.History, int(b.count&(snapshotRing-1)), b.known, age
	t.Age = uint8(age)
	if age >= maxReach || b.older&^1 == 0 {
		return t
	}
	// The error of a prediction is estimated best from records as far before the newest as the newest is before now.
	half, quarter := (age+1)/2, (age+2)/4
	if b.follow(snaps, quarter, layout.Twelve, past, &t) || b.follow(snaps, half, layout.Eight, past, &t) ||
		b.follow(snaps, min(half, (maxReach-age)/(layout.Six.Times()-1)), layout.Six, past, &t) {
		return t
	}
	if gap := b.nearest(snaps, half); b.follow(snaps, gap, layout.Eight, past, &t) || b.follow(snaps, gap, layout.Six, past, &t) ||
		b.follow(snaps, half+1, layout.Six, past, &t) || b.follow(snaps, half-1, layout.Six, past, &t) {
		return t
	}
	b.follow(snaps, b.nearest(snaps, age), layout.Two, past, &t)
	return t
}

// nearest is how many Steps before the baseline the client has another record: the smallest such number that is at least
// gap, else the largest below it; 0 when there is none.
func (b *basis) nearest(snaps *snapshots, gap int) (found int) {
	for older := b.older &^ 1; older != 0; older &= older - 1 {
		count := b.count - int64(bits.TrailingZeros32(older))
		if !snaps.has(count) {
			return found
		}
		found = int(b.frame - snaps.frames[count&(snapshotRing-1)])
		if found >= gap {
			return found
		}
	}
	return found
}

// follow fills past with the numbers of records that are gap Steps apart. It returns false when the client isn't known
// to have all of them, or when they share no unit with the baseline.
func (b *basis) follow(snaps *snapshots, gap int, form layout.Form, past *layout.Past, t *wire.Path) bool {
	n := form.Times()
	back := (n - 1) * gap
	if gap < 1 || past.Age+back > maxReach {
		return false
	}
	predicted := b.known
	// The short way of an actor that changes in every Step: the records are as many changes behind as Steps.
	if first := b.count - int64(back); first >= snaps.since && snaps.has(first) && snaps.frames[b.count&(snapshotRing-1)] == b.frame {
		if all := multiples[gap] & (2<<back - 1); b.older&all != all {
			return false
		}
		place, at := int(b.count), past.At[1:n]
		for i := range at {
			place = (place - gap) & (snapshotRing - 1)
			predicted &= snaps.changed[place]
			at[i] = place
		}
		return b.found(predicted, gap, form, past, t)
	}
	for i := 1; i < n; i++ {
		frame, count := b.frame-uint32(i*gap), b.count-int64(i*gap)
		if count < 0 || snaps.frames[count&(snapshotRing-1)] != frame { // it doesn't change in every Step
			count = snaps.change(frame, b.count)
		}
		place, d := int(count)&(snapshotRing-1), b.count-count
		if d >= 32 || b.older>>d&1 == 0 || snaps.counts[place] != count || snaps.frames[place] != frame {
			return false
		}
		predicted &= snaps.changed[place]
		past.At[i] = place
	}
	return b.found(predicted, gap, form, past, t)
}

// multiples has, for each gap, the bits of baseline.older that are a multiple of it before the baseline.
var multiples = func() (all [maxReach + 1]uint32) {
	for gap := 1; gap <= maxReach; gap++ {
		for i := gap; i <= maxReach; i += gap {
			all[gap] |= 1 << i
		}
	}
	return all
}()

// found takes these records as the path. It returns false when they predict no unit.
func (b *basis) found(predicted layout.Mask, gap int, form layout.Form, past *layout.Past, t *wire.Path) bool {
	if predicted &= b.allowed; predicted == 0 {
		return false
	}
	past.Predicted, past.Gap, past.Form = predicted, gap, form
	t.Gap, t.Form = uint8(gap), uint8(form)
	return true
}
