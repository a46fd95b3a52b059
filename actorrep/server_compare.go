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
	compared   uint32        // frame of the last Step that compared it
	marked     bool          // in World.marked
	forced     bool
	inSchedule bool
	sleeps     bool // some views are asleep and wake in the order of the compares; see compares

	lastFrame    uint32 // of the last change
	streak       int32  // consecutive changes; tells whether the actor moves
	lastChange   time.Duration
	snaps        *snapshots
	polled       int           // index in World.polled, or -1
	due          time.Duration // earliest time of the next compare
	booked       time.Duration // time of its entry in the schedule
	fastest      time.Duration // the interval that was set; an adaptive frequency's is longer
	dormantSince time.Duration
}

func newReplicated(c *class) *replicated {
	return &replicated{shadow: c.layout.NewShadow(), interval: c.interval, fastest: c.interval, polled: -1}
}

// newborn reports whether the actor wasn't compared yet.
func (r *replicated) newborn() bool { return r.shadow.Stamp == 0 }

// snapshots is an actor's numbers after its last changes. Later ones are predicted from them.
type snapshots struct {
	counts  [snapshotRing]int64
	frames  [snapshotRing]uint32      // of the changes
	changed [snapshotRing]layout.Mask // units with a delta form
	since   int64                     // the number of the first change of those that have come one in each Step until now
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
	return s != nil && count >= 0 && s.counts[count&(snapshotRing-1)] == count
}

// change is the number of the newest change, up to from, that was made in a frame or before. It may no longer be kept.
func (s *snapshots) change(frame uint32, from int64) int64 {
	count := from
	for count > from-snapshotRing && s.has(count) && int32(s.frames[count&(snapshotRing-1)]-frame) > 0 {
		count--
	}
	return count
}

// remember stores the numbers after a change.
func (r *replicated) remember(l *layout.Layout, changed layout.Mask) {
	l.Remember(&r.snaps.History, r.snaps.note(r.count, r.lastFrame, changed), r.shadow)
}

// note notes a change, and says where its numbers are kept.
func (s *snapshots) note(count int64, frame uint32, changed layout.Mask) (place int) {
	place = int(count & (snapshotRing - 1))
	if !s.has(count-1) || s.frames[(place-1)&(snapshotRing-1)]+1 != frame {
		s.since = count
	}
	s.counts[place], s.frames[place], s.changed[place] = count, frame, changed
	return place
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
	c := &w.compares
	marked := w.marked
	w.marked = w.spare[:0]
	for i, b := range marked {
		if i%batched == 0 {
			fetchMarked(marked[i:min(i+batched, len(marked))])
		}
		if b.world != w || !b.rep.marked { // it is in the list twice
			continue
		}
		b.rep.marked = false
		if b.rep.interval > 0 && w.now < b.rep.due && !b.rep.forced {
			b.rep.marked = true
			w.appoint(b)
			continue
		}
		if b.rep.polled < 0 {
			c.add(w, b)
		}
	}
	clear(marked)
	w.spare = marked[:0]
	for _, b := range w.polled {
		c.add(w, b)
	}
	for a, ok := w.scheduled.Min(); ok && a.at <= w.now; a, ok = w.scheduled.Min() {
		w.scheduled.DeleteMin()
		a.b.rep.inSchedule, a.b.rep.marked = false, false
		if a.b.rep.compared != w.frame { // it may have been forced
			c.add(w, a.b)
		}
		c.popped = append(c.popped, a.b)
	}
	c.run(w)
	for i, b := range c.popped {
		if b.needsPolling() {
			w.appoint(b)
		}
		c.popped[i] = nil
	}
	c.popped = c.popped[:0]
	w.tellListener()
}

// tellListener tells of the actors that have changed, when all are compared: the listener may change anything.
func (w *World) tellListener() {
	for _, b := range w.moved {
		if b.world == w {
			w.listener.ActorChanged(b.self)
		}
	}
	clear(w.moved)
	w.moved = w.moved[:0]
}

// batched is how many actors are compared, and then have their views told, one after another. Before each of these what it needs is read for the whole
// batch: the actors that have changed are anywhere in a large world, and a core that reads of several has their waits for memory overlap. A core has some
// ten or twenty reads under way, and what was read should still be in its cache when it is needed.
const batched = 32

// fewActors of a world, and their views, stay in a core's cache from Step to Step: nothing is read in advance.
const fewActors = 1024

// fetchMarked, fetchShadows and fetchViews read a little of each actor. The sums have no meaning.
//
//go:noinline
func fetchMarked(actors []*Base) (sum int64) {
	var reps [batched]*replicated
	for i, b := range actors {
		reps[i] = b.rep
	}
	for _, r := range reps[:len(actors)] {
		if r != nil { // nil: it has gone
			sum += r.count
		}
	}
	return sum
}

// fetchShadows is for comparing.
//
//go:noinline
func fetchShadows(batch []comparison) (sum int64) {
	for i := range batch {
		b := batch[i].b
		r := b.rep
		if r == nil {
			continue
		}
		s := r.shadow
		sum += int64(b.guid) + int64(r.lastFrame) + s.Stamp
		if n := len(s.Words); n > 0 {
			sum += int64(s.Words[n-1])
		}
	}
	return sum
}

// fetchViews is for telling the views of those that have changed. Of many views of one actor the waits overlap anyway.
//
//go:noinline
func fetchViews(batch []comparison) (sum int64) {
	for i := range batch {
		if it := &batch[i]; it.changed != 0 && it.b.rep != nil {
			views := it.b.rep.views
			for _, v := range views[:min(len(views), fetchedViews)] {
				sum += int64(v.dirty) + int64(v.total)
			}
		}
	}
	return sum
}

const fetchedViews = 8

// compares is the actors that a Step compares. On one core a batch is compared and its views are told, then the next one. On several cores
// there are three passes. Parts of the list are compared at the same time. Then each connection learns what its acks
// mean, and, when many views have changes, goes through all its views and marks the changes: on several cores too, since
// no two connections have the same view. Last, what concerns the World is done for one actor after the other. The order
// in which a connection queues open views has no effect.
type compares struct {
	list   []comparison
	views  int           // of all actors of the list
	from   int           // as many views are told on several cores
	told   []int         // by part of the list: how many views its changed actors have
	fresh  []uint8       // by the actor's slot: 1 if it has changed
	news   []layout.Mask // by the actor's slot: what has changed, where fresh is 1
	marks  bool          // the connections mark the changes
	slept  [][]*Base     // by worker: actors whose changes met a view that is asleep
	asked  []asked       // by worker
	popped []*Base       // from the schedule
}

type comparison struct {
	b              *Base
	changed, unfit layout.Mask
	moves          bool // between the polled list and the schedule
	compared       bool // in its part of the list
	marked         bool // its views that aren't asleep know of the changes
	stays          bool // the listener needn't be told
}

// asked is actors of a batch that have changed, and whether the Relevancy has said that they are where they were.
type asked struct {
	places [batched]int // in the batch
	actors [batched]Actor
	stays  [batched]bool
}

const (
	// manyViews are told by the cores that encode them later. Fewer are told faster on one core, although it takes their cache lines from the others.
	manyViews = 1 << 12
	// markedShare: the connections go through all their views when at least one in so many has changes.
	markedShare = 16
	// markedAtOnce is how many of a connection's views are looked at before those of them that have changes are marked.
	markedAtOnce = 256
	// partsACore is how many parts there are for each core, so that one that is late has less to do.
	partsACore = 4
)

// add compares an actor: on one core with its batch, on several cores with all the others in run.
func (c *compares) add(w *World, b *Base) {
	b.rep.compared = w.frame
	c.list = append(c.list, comparison{b: b})
	c.views += len(b.rep.views)
	if len(c.list) == batched && len(w.workers) == 1 {
		c.finish(w, false)
	}
}

// run compares the actors of the list and empties it.
func (c *compares) run(w *World) {
	parted := c.views >= c.from && len(w.peers) > 1 && len(w.workers) > 1
	if parted {
		if len(c.news) < len(w.actors) {
			n := len(w.actors) + len(w.actors)/2
			c.fresh, c.news = make([]uint8, n), make([]layout.Mask, n)
		}
		clear(c.fresh[:len(w.actors)])
		w.onCores(len(c.told), w.comparePart)
		c.marks = c.many(w)
	}
	if c.marks {
		w.onCores(len(w.peers), w.markPeer)
		w.learned()
	} else {
		w.learnFates()
	}
	for i, slept := range c.slept {
		for _, b := range slept {
			b.rep.sleeps = true
		}
		clear(slept)
		c.slept[i] = slept[:0]
	}
	c.finish(w, parted)
}

// finish does what the compares mean for the World, in the order of the list, and empties it. It compares what wasn't compared in parts.
func (c *compares) finish(w *World, parted bool) {
	for rest := c.list; len(rest) > 0; {
		batch := rest[:min(len(rest), batched)]
		rest = rest[len(batch):]
		if !parted {
			w.compareBatch(batch, 0)
		}
		if !c.marks && w.live > fewActors {
			fetchViews(batch)
		}
		for i := range batch {
			it := &batch[i]
			if it.marked = it.compared && c.marks; !it.compared {
				w.compare(it)
				w.locate(batch[i:i+1], 0)
			}
			if w.finish(it) {
				w.moved = append(w.moved, it.b)
			}
		}
	}
	clear(c.list)
	c.list, c.views, c.marks = c.list[:0], 0, false
}

// compareBatch compares those that needn't be compared alone.
func (w *World) compareBatch(batch []comparison, worker int) {
	if w.live > fewActors {
		fetchShadows(batch)
	}
	for i := range batch {
		if it := &batch[i]; it.b.rep != nil && it.b.class.layout.Concurrent() {
			w.compare(it)
			it.compared = true
		}
	}
	w.locate(batch, worker)
}

// quiet reports whether an actor's compare means nothing for the World, when its views know of the changes. It doesn't read what another core may have
// written just now. A view that sleeps while its actor is awake is about to open.
func (w *World) quiet(it *comparison) bool {
	told := it.changed == 0 || len(w.onValues) == 0 && (it.stays || w.listener == nil || it.b.parent != nil)
	return told && it.unfit == 0 && !it.moves && !it.b.dormant
}

// many reports whether so many views have changes that the connections mark them.
func (c *compares) many(w *World) bool {
	changed, all := 0, 0
	for _, n := range c.told {
		changed += n
	}
	for _, p := range w.peers {
		all += len(p.list)
	}
	return changed*markedShare >= all
}

// part compares a part of the list, but for the actors that must be compared alone.
func (c *compares) part(w *World, i, worker int) {
	n, told := len(c.told), 0
	list := c.list[i*len(c.list)/n : (i+1)*len(c.list)/n]
	for len(list) > 0 {
		batch := list[:min(len(list), batched)]
		list = list[len(batch):]
		w.compareBatch(batch, worker)
		for i := range batch {
			if it := &batch[i]; it.changed != 0 {
				c.fresh[it.b.slot], c.news[it.b.slot] = 1, it.changed
				told += len(it.b.rep.views)
			}
		}
	}
	c.told[i] = told
}

// mark marks what has changed in the views of a connection and queues those that are open. The views of a batch are read
// one right after another, so that the waits for memory overlap.
func (c *compares) mark(p *Peer, worker int) {
	var found [markedAtOnce]int32 // places of views whose actors have changed
	var views [markedAtOnce]*view
	for from, slots := 0, p.slots; len(slots) > 0; {
		part := slots[:min(len(slots), markedAtOnce)]
		n := 0
		for i, slot := range part {
			found[n] = int32(from + i)
			n += int(c.fresh[slot])
		}
		for i, place := range found[:n] {
			v := p.list[place]
			v.dirty |= c.news[p.slots[place]]
			views[i] = v
		}
		for _, v := range views[:n] {
			if v.state == asleep {
				c.slept[worker] = append(c.slept[worker], v.b)
			} else {
				v.wake()
			}
		}
		from, slots = from+len(part), slots[len(part):]
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

// compareNow finds one actor's changes and tells its views.
func (w *World) compareNow(b *Base) {
	w.learnFates()
	it := []comparison{{b: b}}
	w.compare(&it[0])
	w.locate(it, 0)
	if w.finish(&it[0]) {
		w.listener.ActorChanged(b.self)
	}
}

// compare finds one actor's changes. It changes nothing but the actor and it.
func (w *World) compare(it *comparison) {
	b := it.b
	r, l := b.rep, b.class.layout
	m := r.marks
	if b.needsPolling() {
		m |= ^l.Pushed
	}
	m &= l.All() &^ b.inactive
	r.marks &= b.inactive
	r.forced = false
	unfit := r.shadow.Unfit
	if r.newborn() {
		r.lastChange = w.now
	}
	r.shadow.Stamp = r.count + 1
	it.changed = l.Compare(r.shadow, b.ptr, m)
	it.unfit = r.shadow.Unfit &^ unfit
	if b.class.slowest > 0 {
		it.moves = r.adapt(w.now, b.class, it.changed != 0)
	}
	if r.interval > 0 { // counted from the due time, because Steps don't coincide with it
		if r.due += r.interval; r.due <= w.now {
			r.due = w.now + r.interval
		}
	}
	if it.changed == 0 {
		return
	}
	r.count++
	r.lastChange = w.now
	if w.frame-r.lastFrame <= streakGap {
		r.streak++
	} else {
		r.streak = 0
	}
	r.lastFrame = w.frame
	if r.snaps != nil {
		r.remember(l, it.changed&l.Deltas)
	} else if r.streak >= streakBegin && it.changed&l.Deltas != 0 {
		r.snaps = &snapshots{History: l.NewHistory(snapshotRing)}
		r.remember(l, it.changed&l.Deltas)
	}
}

// locate asks the Relevancy which actors of a batch that have changed are where they were.
func (w *World) locate(batch []comparison, worker int) {
	if w.stays == nil {
		return
	}
	a, n := &w.compares.asked[worker], 0
	for i := range batch {
		if it := &batch[i]; it.changed != 0 && it.b.parent == nil {
			a.places[n], a.actors[n] = i, it.b.self
			n++
		}
	}
	if n == 0 {
		return
	}
	clear(a.stays[:n])
	w.stays(a.actors[:n], a.stays[:n])
	for i, place := range a.places[:n] {
		batch[place].stays = a.stays[i]
	}
	clear(a.actors[:n])
}

// finish does what one actor's compare means for the World, and reports whether the listener is to be told.
func (w *World) finish(it *comparison) (moved bool) {
	b := it.b
	w.Counters.Compared++
	if it.changed != 0 {
		w.Counters.Changed++
	}
	if it.marked && w.quiet(it) {
		return false
	}
	if it.unfit != 0 {
		w.tellUnfit(b, it.unfit)
	}
	if it.moves {
		w.moveBetweenLists(b)
	}
	if b.dormant {
		for _, v := range b.rep.views {
			v.mayRest()
		}
	}
	if it.changed == 0 {
		return false
	}
	if r := b.rep; !it.marked || r.sleeps {
		r.sleeps = false
		for _, v := range r.views {
			v.changed(it.changed)
		}
	}
	if len(w.onValues) > 0 {
		w.found = append(w.found, b)
	}
	return w.listener != nil && b.parent == nil && !it.stays
}

// The adaptive frequency is Unreal's: slowest after seven seconds without a change. After a change the next compare comes
// after half of the time since the last one. Unreal uses 0.7; rounded up to whole Steps that may never get faster.
const (
	adaptAfter = 2 * time.Second
	adaptOver  = 5 * time.Second
)

// adapt changes the interval, between the one that was set and the class's slowest. It reports whether the actor is now to be compared
// every Step, or no longer.
func (r *replicated) adapt(now time.Duration, c *class, changed bool) (moves bool) {
	was, fast, slow := r.interval, r.fastest, max(r.fastest, c.slowest)
	switch quiet := now - r.lastChange; {
	case changed:
		r.interval = min(max(quiet/2, fast), slow)
	case quiet > adaptAfter:
		part := min(float64(quiet-adaptAfter)/float64(adaptOver), 1)
		r.interval = fast + time.Duration(part*float64(slow-fast))
	}
	return (was == 0) != (r.interval == 0)
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
