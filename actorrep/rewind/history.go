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

// find is the index of an id, or the index at which to insert it.
func (s *snapshot[P]) find(id ID) (int, bool) {
	if n := len(s.entries); n == 0 || s.entries[n-1].id < id {
		return n, false
	}
	return slices.BinarySearchFunc(s.entries, id, func(e entry[P], id ID) int {
		return int(int64(e.id) - int64(id))
	})
}

// History keeps the poses of the last ticks. Not safe for concurrent use.
//
// Invariant: with n = min(made, len(snaps)), snapshot i is at i % len(snaps) for made-n <= i < made, and these are in
// the order of their times.
type History[P any] struct {
	Counters Counters

	cfg   Config[P]
	snaps []snapshot[P]
	made  int
	view  View[P]
	add   func(id ID, p P) error // View.add
	saved []entry[P]             // the present poses, during Do
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

// Begin begins the snapshot of a time, which must be later than all before.
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

// Add adds a pose to the newest snapshot. A second pose of the same id replaces the first. Adding in the order of ids is
// fastest.
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

// Clamp limits view to the times that may be seen at the server time now.
func (h *History[P]) Clamp(now, view time.Duration) time.Duration {
	return min(max(view, now-h.cfg.MaxRewind), now)
}

// At returns a view of the world at a time, which is clamped. It is valid until the next call of At, Show, Do or Begin.
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

// Show returns a view whose poses the caller provides, for example of things that a player sees at different times. fill
// calls add for each, fastest in the order of ids. View.Time is at; nothing is clamped. The view is valid as long as one
// of At.
func (h *History[P]) Show(at time.Duration, fill func(add func(id ID, p P) error)) *View[P] {
	h.Counters.Views++
	v := &h.view
	v.at, v.entries, v.boxed = at, v.entries[:0], false
	fill(h.add)
	return v
}

// add adds a pose to the view. A second pose of the same id replaces the first.
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

// between fills the view with poses interpolated between two snapshots.
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

// Mover is a game's world whose entities can be moved to past poses.
type Mover[P any] interface {
	// Pose is an entity's current pose; ok is false when it doesn't exist.
	Pose(id ID) (p P, ok bool)
	// SetPose moves an entity. It is called only for entities for which Pose returned true.
	SetPose(id ID, p P)
}

// Do moves all entities of w that were there at a time, which is clamped, to their poses then, except skip. It calls f
// and moves them back, also when f panics. Poses that f sets are lost; entities that f removes stay removed. Entities
// that weren't there at that time aren't moved.
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
