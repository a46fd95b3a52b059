package rewind

import "time"

// box is a hitbox of an entity of a view.
type box struct {
	id    ID
	part  int
	shape Capsule
}

// group is the boxes of one entity, and a sphere around them all.
type group struct {
	from, to int
	around   Capsule
}

// View is the world at one time. It belongs to its history.
type View[P any] struct {
	h       *History[P]
	at      time.Duration
	entries []entry[P]
	boxed   bool
	boxes   []box
	groups  []group
	scratch [MaxHitboxes]Capsule
}

// Hit is what a ray met.
type Hit struct {
	ID   ID
	Part int     // which of its hitboxes
	T    float64 // the share of the way
	At   Vec
}

// Touch is what a shape overlaps.
type Touch struct {
	ID    ID
	Part  int     // which of its hitboxes
	Depth float64 // how deep
}

// Time is what time the view is of.
func (v *View[P]) Time() time.Duration { return v.at }

// Pose is where an entity was; ok is false when it wasn't there.
func (v *View[P]) Pose(id ID) (p P, ok bool) {
	s := snapshot[P]{entries: v.entries}
	if i, found := s.find(id); found {
		return v.entries[i].pose, true
	}
	return p, false
}

// All calls f with all that was there, in the order of ids, until f is false.
func (v *View[P]) All(f func(id ID, p P) bool) {
	for _, e := range v.entries {
		if !f(e.id, e.pose) {
			return
		}
	}
}

// Ray is what a straight way from one point to another meets first, without the one to
// skip. Of equals it is the one with the lowest id.
func (v *View[P]) Ray(from, to Vec, skip ID) (Hit, bool) {
	v.build()
	way := Capsule{A: from, B: to}
	best, found := Hit{}, false
	for _, g := range v.groups {
		if v.boxes[g.from].id == skip || depth(&way, &g.around) < 0 {
			continue
		}
		for _, b := range v.boxes[g.from:g.to] {
			t, ok := enter(from, to, &b.shape)
			if ok && (!found || t < best.T) {
				best, found = Hit{ID: b.id, Part: b.part, T: t, At: lerp(from, to, t)}, true
			}
		}
	}
	return best, found
}

// Overlap appends all hitboxes that a shape touches to dst, without those of the one to
// skip, in the order of ids. A sphere is a capsule between twice the same point; a sphere swept
// along a way is the capsule of that way.
func (v *View[P]) Overlap(c Capsule, skip ID, dst []Touch) []Touch {
	v.build()
	for _, g := range v.groups {
		if v.boxes[g.from].id == skip || depth(&c, &g.around) < 0 {
			continue
		}
		for _, b := range v.boxes[g.from:g.to] {
			if d := depth(&c, &b.shape); d >= 0 {
				dst = append(dst, Touch{ID: b.id, Part: b.part, Depth: d})
			}
		}
	}
	return dst
}

// build asks for the hitboxes, once for each view and only if there is a query.
func (v *View[P]) build() {
	if v.boxed {
		return
	}
	v.boxed, v.boxes, v.groups = true, v.boxes[:0], v.groups[:0]
	if v.h.cfg.Hitboxes == nil {
		return
	}
	for i := range v.entries {
		e := &v.entries[i]
		shapes := v.h.cfg.Hitboxes(e.id, &e.pose, v.scratch[:0])
		if over := len(shapes) - MaxHitboxes; over > 0 {
			v.h.Counters.Ignored += uint64(over)
			shapes = shapes[:MaxHitboxes]
		}
		if len(shapes) == 0 {
			continue
		}
		from := len(v.boxes)
		for part, s := range shapes {
			v.boxes = append(v.boxes, box{id: e.id, part: part, shape: s})
		}
		v.groups = append(v.groups, group{from: from, to: len(v.boxes), around: around(shapes)})
	}
}
