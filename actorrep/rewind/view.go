package rewind

import "time"

// box is a hitbox of an entity of a view.
type box struct {
	id    ID
	part  int
	shape Capsule
}

// group is the boxes of one entity, with a sphere that contains them all.
type group struct {
	from, to int
	around   Capsule
}

// View is the world at one time. It belongs to its History, which reuses it.
type View[P any] struct {
	h       *History[P]
	at      time.Duration
	entries []entry[P]
	boxed   bool
	boxes   []box
	groups  []group
	scratch [MaxHitboxes]Capsule
}

// Hit is the first hitbox that a ray meets.
type Hit struct {
	ID   ID
	Part int     // which of its hitboxes
	T    float64 // fraction of the line, 0 to 1
	At   Vec
}

// Touch is a hitbox that a shape overlaps.
type Touch struct {
	ID    ID
	Part  int     // which of its hitboxes
	Depth float64 // how deep they overlap
}

// Time is the time that the view shows.
func (v *View[P]) Time() time.Duration { return v.at }

// Pose is where an entity was; ok is false when it wasn't there.
func (v *View[P]) Pose(id ID) (p P, ok bool) {
	s := snapshot[P]{entries: v.entries}
	if i, found := s.find(id); found {
		return v.entries[i].pose, true
	}
	return p, false
}

// All calls f for each entity, in the order of ids, until f returns false.
func (v *View[P]) All(f func(id ID, p P) bool) {
	for _, e := range v.entries {
		if !f(e.id, e.pose) {
			return
		}
	}
}

// Ray returns the first hitbox on the straight line between two points, ignoring the entity skip. Of several at the same
// distance it is the one with the lowest id.
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

// Overlap appends to dst all hitboxes that a shape touches, ignoring the entity skip, in the order of ids. For a sphere
// use Sphere. A sphere swept along a line is the capsule of that line.
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

// build collects the hitboxes, once for each view and only when there is a query.
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
