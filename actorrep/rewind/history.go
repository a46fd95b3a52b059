package rewind

import (
	"slices"
	"time"
)

type entry[P any] struct {
	id   ID
	pose P
}

// snapshot is the poses of a tick, in the order of their ids.
type snapshot[P any] struct {
	at      time.Duration
	entries []entry[P]
}

// find is the index of an id, or where it belongs.
func (s *snapshot[P]) find(id ID) (int, bool) {
	if n := len(s.entries); n == 0 || s.entries[n-1].id < id {
		return n, false
	}
	return slices.BinarySearchFunc(s.entries, id, func(e entry[P], id ID) int {
		return int(int64(e.id) - int64(id))
	})
}

// History is the poses of the last ticks. Not safe for concurrent use.
//
// Invariant: the snapshots made-n <= i < made are at i % len(snaps), in the order of
// their times, n being made but at most len(snaps).
type History[P any] struct {
	Counters Counters

	cfg   Config[P]
	snaps []snapshot[P]
	made  int
	view  View[P]
	add   func(id ID, p P) error // View.add
	saved []entry[P]             // where the world really is, within Do
	doing bool
}

// New returns an empty history.
func New[P any](cfg Config[P]) (*History[P], error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	h := &History[P]{cfg: cfg, snaps: make([]snapshot[P], cfg.Snapshots)}
	h.view.h = h
	h.add = h.view.add
	return h, nil
}

// Len is the number of snapshots kept.
func (h *History[P]) Len() int { return min(h.made, len(h.snaps)) }

// at is the i-th snapshot kept, oldest first.
func (h *History[P]) at(i int) *snapshot[P] { return &h.snaps[(h.made-h.Len()+i)%len(h.snaps)] }

// Begin begins the snapshot of a time, younger than all before.
func (h *History[P]) Begin(at time.Duration) error {
	if h.made > 0 && at <= h.at(h.Len()-1).at {
		return ErrOrder
	}
	s := &h.snaps[h.made%len(h.snaps)]
	h.made++
	s.at, s.entries = at, s.entries[:0]
	h.Counters.Snapshots++
	return nil
}

// Add puts a pose into the snapshot that was begun last. A second of the same id replaces
// the first. It is fastest in the order of ids.
func (h *History[P]) Add(id ID, p P) error {
	if h.made == 0 {
		return ErrOrder
	}
	s := h.at(h.Len() - 1)
	i, found := s.find(id)
	if found {
		s.entries[i].pose = p
		return nil
	}
	if len(s.entries) == h.cfg.MaxEntities {
		h.Counters.Full++
		return ErrFull
	}
	s.entries = slices.Insert(s.entries, i, entry[P]{id: id, pose: p})
	return nil
}

// Clamp is the time nearest to view that may be seen at the server time now.
func (h *History[P]) Clamp(now, view time.Duration) time.Duration {
	return min(max(view, now-h.cfg.MaxRewind), now)
}

// At is the world at a time, clamped. The view is valid until the next call of At, Do or
// Begin.
func (h *History[P]) At(now, view time.Duration) *View[P] {
	h.Counters.Views++
	at := h.Clamp(now, view)
	if at != view {
		h.Counters.Clamped++
	}
	v := &h.view
	v.at, v.entries, v.boxed = at, v.entries[:0], false
	n := h.Len()
	i := n
	for i > 0 && h.at(i-1).at > at {
		i--
	}
	switch {
	case n == 0:
	case i == 0:
		v.entries = append(v.entries, h.at(0).entries...)
	case i == n:
		v.entries = append(v.entries, h.at(n-1).entries...)
	default:
		v.between(h.at(i-1), h.at(i), at)
	}
	return v
}

// Show makes a view of what the caller knows by means of its own, such as things that a player sees at times of their own: fill adds their
// poses, fastest in the order of ids. View.Time is at. Nothing is clamped. The view is valid as long as that of At.
func (h *History[P]) Show(at time.Duration, fill func(add func(id ID, p P) error)) *View[P] {
	h.Counters.Views++
	v := &h.view
	v.at, v.entries, v.boxed = at, v.entries[:0], false
	fill(h.add)
	return v
}

// add puts a pose into the view. A second of the same id replaces the first.
func (v *View[P]) add(id ID, p P) error {
	s := snapshot[P]{entries: v.entries}
	i, found := s.find(id)
	switch {
	case found:
		v.entries[i].pose = p
	case len(v.entries) == v.h.cfg.MaxEntities:
		v.h.Counters.Full++
		return ErrFull
	default:
		v.entries = slices.Insert(v.entries, i, entry[P]{id: id, pose: p})
	}
	return nil
}

// between fills the view with the poses between two snapshots.
func (v *View[P]) between(a, b *snapshot[P], at time.Duration) {
	t := float64(at-a.at) / float64(b.at-a.at)
	cfg := &v.h.cfg
	j := 0
	for _, e := range a.entries {
		for j < len(b.entries) && b.entries[j].id < e.id {
			j++
		}
		if j < len(b.entries) && b.entries[j].id == e.id {
			to := b.entries[j].pose
			if cfg.Teleport == nil || !cfg.Teleport(e.pose, to) {
				e.pose = cfg.Lerp(e.pose, to, t)
			}
		}
		v.entries = append(v.entries, e)
	}
}

// Mover is a game's world that can be put into the past.
type Mover[P any] interface {
	// Pose is where an entity is; ok is false when there is none.
	Pose(id ID) (p P, ok bool)
	// SetPose puts an entity there. It is called only for those that Pose knows.
	SetPose(id ID, p P)
}

// Do puts all that was there at a time, clamped, to where it was, except the one to skip, calls f, and
// puts all to where it is: also when f panics. Poses that f sets are lost; what f removed from the world
// stays removed. What came into the world later than that time is left where it is.
func (h *History[P]) Do(now, view time.Duration, w Mover[P], skip ID, f func(v *View[P])) error {
	if h.doing {
		return ErrNested
	}
	h.doing = true
	defer h.restore(w)
	v := h.At(now, view)
	for _, e := range v.entries {
		if p, ok := w.Pose(e.id); ok && e.id != skip {
			h.saved = append(h.saved, entry[P]{id: e.id, pose: p})
			w.SetPose(e.id, e.pose)
		}
	}
	f(v)
	return nil
}

func (h *History[P]) restore(w Mover[P]) {
	for _, e := range h.saved {
		if _, ok := w.Pose(e.id); ok {
			w.SetPose(e.id, e.pose)
		}
	}
	clear(h.saved)
	h.saved = h.saved[:0]
	h.doing = false
}
