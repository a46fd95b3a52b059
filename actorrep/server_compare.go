package actorrep

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// replicated is the part of an actor's server state that all connections share.
type replicated struct {
	// What every change touches comes first.
	shadow     *layout.Shadow
	views      []*view // of the connections that have the actor or are about to
	count      int64   // number of changes so far
	marks      layout.Mask
	interval   time.Duration // shortest time between two compares; 0 none
	compared   uint32        // frame of the last compare
	marked     bool          // in World.marked
	forced     bool
	inSchedule bool

	lastFrame    uint32 // of the last change
	streak       int32  // consecutive changes; tells whether the actor moves
	lastChange   time.Duration
	snaps        *snapshots
	polled       int           // index in World.polled, or -1
	due          time.Duration // earliest time of the next compare
	booked       time.Duration // time of its entry in the schedule
	optimum      time.Duration // current interval of an adaptive frequency
	dormantSince time.Duration
}

func newReplicated(c *class) *replicated {
	return &replicated{shadow: c.layout.NewShadow(), interval: c.interval, optimum: c.interval, polled: -1}
}

// snapshots is an actor's numbers after its last changes. Later ones are predicted from them.
type snapshots struct {
	counts  [snapshotRing]int64
	frames  [snapshotRing]uint32      // of the changes
	changed [snapshotRing]layout.Mask // units with a delta form
	layout.History
}

const (
	snapshotRing = 32
	// streakBegin is how many changes, each within streakGap Steps of the one before, make the server keep an actor's
	// snapshots: the actor moves.
	streakBegin = 3
	streakGap   = 4
)

// has reports whether the numbers after a change are kept.
func (s *snapshots) has(count int64) bool {
	return s != nil && count >= 0 && s.counts[count%snapshotRing] == count
}

// change is the number of the newest change, up to from, that was made in a frame or before. It may no longer be kept.
func (s *snapshots) change(frame uint32, from int64) int64 {
	count := from
	for count > from-snapshotRing && s.has(count) && int32(s.frames[count%snapshotRing]-frame) > 0 {
		count--
	}
	return count
}

// remember stores the numbers after a change.
func (r *replicated) remember(l *layout.Layout, changed layout.Mask) {
	s := r.snaps
	i := int(r.count % snapshotRing)
	s.counts[i], s.frames[i], s.changed[i] = r.count, r.lastFrame, changed
	l.Remember(&s.History, i, r.shadow)
}

// appointment is when an actor is to be compared.
type appointment struct {
	at   time.Duration
	guid uint32
	b    *Base
}

func (a appointment) before(b appointment) bool {
	return a.at < b.at || a.at == b.at && a.guid < b.guid
}

// needsPolling reports whether an actor has fields that don't tell when they change.
func (b *Base) needsPolling() bool {
	return !b.class.manual && b.class.layout.Pushed != b.class.layout.All() && !b.dormant && !b.tornOff
}

// reschedule files an actor where its settings say: in the list compared every Step, in the schedule, or nowhere.
func (w *World) reschedule(b *Base) {
	waited := b.rep.inSchedule && b.rep.marked
	w.unschedule(b)
	if waited { // marked, but not due until now
		w.marked = append(w.marked, b)
	}
	switch {
	case !b.needsPolling():
	case b.rep.interval == 0:
		b.rep.polled = len(w.polled)
		w.polled = append(w.polled, b)
	default:
		w.appoint(b)
	}
}

func (w *World) unschedule(b *Base) {
	r := b.rep
	if i := r.polled; i >= 0 {
		last := len(w.polled) - 1
		w.polled[i] = w.polled[last]
		w.polled[i].rep.polled = i
		w.polled[last] = nil
		w.polled = w.polled[:last]
		r.polled = -1
	}
	if r.inSchedule {
		w.scheduled.Delete(appointment{at: r.booked, guid: uint32(b.guid)})
		r.inSchedule = false
	}
}

// appoint puts an actor into the schedule at its due time.
func (w *World) appoint(b *Base) {
	if b.rep.inSchedule {
		return
	}
	b.rep.inSchedule, b.rep.booked = true, b.rep.due
	w.scheduled.ReplaceOrInsert(appointment{b.rep.due, uint32(b.guid), b})
}

// compareAll finds what has changed since the last Step.
func (w *World) compareAll() {
	marked := w.marked
	w.marked = w.spare[:0]
	for _, b := range marked {
		if b.rep == nil || b.world != w || b.rep.compared == w.frame {
			continue
		}
		b.rep.marked = false
		if b.rep.interval > 0 && w.now < b.rep.due && !b.rep.forced {
			b.rep.marked = true
			w.appoint(b)
			continue
		}
		if b.rep.polled < 0 {
			w.compare(b)
		}
	}
	clear(marked)
	w.spare = marked[:0]
	for _, b := range w.polled {
		w.compare(b)
	}
	for {
		a, ok := w.scheduled.Min()
		if !ok || a.at > w.now {
			return
		}
		w.scheduled.DeleteMin()
		a.b.rep.inSchedule, a.b.rep.marked = false, false
		if a.b.rep.compared != w.frame { // it may have been forced
			w.compare(a.b)
		}
		if a.b.needsPolling() {
			w.appoint(a.b)
		}
	}
}

// tellFound calls the functions of OnValues for the actors that have changed. They may change anything.
func (w *World) tellFound() {
	n := len(w.found)
	for i := range n {
		if b := w.found[i]; b.world == w {
			w.tellValues(b)
		}
	}
	rest := append(w.found[:0], w.found[n:]...) // what they changed is told in the next Step
	clear(w.found[len(rest):])
	w.found = rest
}

// compare finds one actor's changes and tells its views.
func (w *World) compare(b *Base) {
	r, l := b.rep, b.class.layout
	m := r.marks
	if b.needsPolling() {
		m |= ^l.Pushed
	}
	m &= l.All() &^ b.inactive
	r.marks &= b.inactive
	r.forced = false
	w.Counters.Compared++
	r.compared = w.frame
	unfit := r.shadow.Unfit
	r.shadow.Stamp = r.count + 1
	changed := l.Compare(r.shadow, b.ptr, m)
	if r.shadow.Unfit&^unfit != 0 {
		w.tellUnfit(b, r.shadow.Unfit&^unfit)
	}
	if b.class.slowest > 0 {
		w.adapt(b, changed != 0)
	}
	if r.interval > 0 { // counted from the due time, because Steps don't coincide with it
		if r.due += r.interval; r.due <= w.now {
			r.due = w.now + r.interval
		}
	}
	if b.dormant {
		for _, v := range r.views {
			v.mayRest()
		}
	}
	if changed == 0 {
		return
	}
	w.Counters.Changed++
	r.count++
	r.lastChange = w.now
	if w.frame-r.lastFrame <= streakGap {
		r.streak++
	} else {
		r.streak = 0
	}
	r.lastFrame = w.frame
	if r.snaps != nil {
		r.remember(l, changed&l.Deltas)
	} else if r.streak >= streakBegin && changed&l.Deltas != 0 {
		r.snaps = &snapshots{History: l.NewHistory(snapshotRing)}
		r.remember(l, changed&l.Deltas)
	}
	for _, v := range r.views {
		v.changed(changed)
	}
	if len(w.onValues) > 0 {
		w.found = append(w.found, b)
	}
	if w.listener != nil && b.parent == nil {
		w.listener.ActorChanged(b.self)
	}
}

// The adaptive frequency is Unreal's: slowest after seven seconds without a change. After a change the next compare comes
// after half of the time since the last one. Unreal uses 0.7; rounded up to whole Steps that may never get faster.
const (
	adaptAfter = 2 * time.Second
	adaptOver  = 5 * time.Second
)

// adapt changes the interval, between the class's own and its slowest.
func (w *World) adapt(b *Base, changed bool) {
	r := b.rep
	fast := b.class.interval
	slow := max(fast, b.class.slowest)
	switch quiet := w.now - r.lastChange; {
	case changed:
		r.optimum = min(max(quiet/2, fast), slow)
	case quiet > adaptAfter:
		part := min(float64(quiet-adaptAfter)/float64(adaptOver), 1)
		r.optimum = fast + time.Duration(part*float64(slow-fast))
	}
	was := r.interval
	r.interval = r.optimum
	if (was == 0) != (r.interval == 0) {
		w.moveBetweenLists(b)
	}
}

// moveBetweenLists queues b to move between the polled list and the schedule. settleMoves does it after compareAll,
// which iterates both.
func (w *World) moveBetweenLists(b *Base) { w.moving = append(w.moving, b) }

func (w *World) settleMoves() {
	for i, b := range w.moving {
		if b.rep != nil {
			w.reschedule(b)
		}
		w.moving[i] = nil
	}
	w.moving = w.moving[:0]
}
