// Package kvsim is a key-value store on a host of a simulation (netconn/simtest). It is slow, late, away, or leaves open what happened,
// as a script says; the same seed gives the same run.
//
//	View (on any host)             Store (the program of one host)
//	  | op: lost, or late    -->    | queue; done in its next tick, when it isn't paused
//	  |   <-- result: lost, or late
//	  |   <-- watch: in order, late; broken by a partition and when the store crashes, then begun again
//
// Cut, pause, crash and skew the store's host to have the store away, stand still, restart or count time wrongly. Its data are on disk:
// they outlive a crash.
package kvsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Trouble is what happens to ops. All chances are percent.
type Trouble struct {
	// Delay is the usual time of each way; each message takes half to one and a half of it. Default 1 ms.
	Delay time.Duration
	// LostOp is the chance that an op never arrives, LostResult that it is done and nobody hears of it, or only that
	// its outcome is unknown.
	LostOp, LostResult int
	// Slow is the chance of a message that takes up to SlowBy longer. So an op may be done long after it was given up.
	Slow   int
	SlowBy time.Duration
	// BreakWatch is the chance, for each change that is told, that the watch breaks instead.
	BreakWatch int
}

// Counters counts what the store did.
type Counters struct {
	Gets, Puts, Deletes, Conflicts, Expired uint64
	Watches, Broken                         uint64
	LostOps, LostResults, Slow, Cut         uint64
}

// Store is the store. Give it to a host as its program.
type Store struct {
	Counters Counters
	Trouble  Trouble

	world *simtest.Simulation
	host  *simtest.Host
	rng   simtest.Rand
	keys  []entry // sorted
	rev   uint64
	made  uint64            // Event.Store
	ends  map[string]uint64 // of keys that were deleted, the revision of that
	queue []request
	views []*View
}

type entry struct {
	key     string
	value   []byte
	rev     uint64
	expires time.Time // zero: never
}

type request struct {
	view  *View
	op    kv.Op
	since uint64 // the newest revision that its machine knew of when op was begun
	watch uint64 // not 0: begin the watch of this number
}

// New returns an empty store for a host of a simulation.
func New(h *simtest.Host, t Trouble) *Store {
	t.Delay = cmp.Or(t.Delay, time.Millisecond)
	h.SetTick(10 * time.Millisecond)
	w := h.Simulation()
	return &Store{Trouble: t, world: w, host: h, rng: w.Rand("kvsim"), made: 1, ends: map[string]uint64{}}
}

// Crashed implements simtest.Crasher: what was asked and not done is lost, and all watches break.
func (s *Store) Crashed() {
	s.queue = s.queue[:0]
	for _, v := range s.views {
		v.lost()
	}
	s.views = nil
}

// Tick implements simtest.Program: it does what was asked.
func (s *Store) Tick(now time.Time) error {
	for _, e := range slices.Clone(s.keys) {
		if !e.expires.IsZero() && !now.Before(e.expires) {
			s.Counters.Expired++
			s.write(entry{key: e.key}, true)
		}
	}
	queue := s.queue
	s.queue = nil
	for _, r := range queue {
		if r.watch != 0 {
			s.begin(r.view, r.watch)
			continue
		}
		s.do(now, r)
	}
	return nil
}

// Entry returns a key's value and revision as the store has them; for checkers.
func (s *Store) Entry(key string) (value []byte, revision uint64, ok bool) {
	i, ok := s.find(key)
	if !ok {
		return nil, 0, false
	}
	return s.keys[i].value, s.keys[i].rev, true
}

// Wipe loses all keys, as a store whose disk was lost. Watches break. Revisions go on.
func (s *Store) Wipe() {
	s.keys = nil
	for _, v := range slices.Clone(s.views) {
		s.breakWatch(v)
	}
}

// Anew is Wipe by a store that was made anew: revisions start again.
func (s *Store) Anew() {
	s.rev = 0
	s.made++
	clear(s.ends)
	s.Wipe()
}

func (s *Store) find(key string) (int, bool) {
	return slices.BinarySearchFunc(s.keys, key, func(e entry, key string) int { return cmp.Compare(e.key, key) })
}

// write writes or deletes, and tells who watches.
func (s *Store) write(e entry, remove bool) {
	s.rev++
	e.rev = s.rev
	i, ok := s.find(e.key)
	what := kv.Event{Kind: kv.Changed, Key: e.key, Value: e.value, Revision: e.rev}
	switch {
	case remove && ok:
		s.keys = slices.Delete(s.keys, i, i+1)
		s.ends[e.key] = e.rev
		what.Kind = kv.Deleted
	case ok:
		s.keys[i] = e
	default:
		s.keys = slices.Insert(s.keys, i, e)
	}
	for _, v := range slices.Clone(s.views) {
		if !kv.Matches(v.watches, e.key) {
			continue
		}
		if s.chance(s.Trouble.BreakWatch) {
			s.breakWatch(v)
			continue
		}
		s.tell(v, what)
	}
}

func (s *Store) breakWatch(v *View) {
	s.Counters.Broken++
	s.views = slices.DeleteFunc(s.views, func(o *View) bool { return o == v })
	v.lost()
}

func (s *Store) do(now time.Time, q request) {
	v, op := q.view, q.op
	i, ok := s.find(op.Key)
	var rev uint64
	if ok {
		rev = s.keys[i].rev
	}
	r := kv.Event{Kind: kv.Result, ID: op.ID}
	switch {
	case op.Kind == kv.Get && !ok:
		s.Counters.Gets++
		r.Status = kv.Missing
	case op.Kind == kv.Get:
		s.Counters.Gets++
		r.Key, r.Value, r.Revision = op.Key, s.keys[i].value, rev
	case op.Expect != kv.Any && op.Expect != rev, op.Kind == kv.Put && op.Expect == 0 && s.ends[op.Key] > q.since: // it was deleted meanwhile
		s.Counters.Conflicts++
		r.Status = kv.Conflict
	case op.Kind == kv.Put:
		s.Counters.Puts++
		e := entry{key: op.Key, value: op.Value}
		if op.TTL > 0 {
			e.expires = now.Add(op.TTL)
		}
		s.write(e, false)
		r.Revision = s.rev
	case ok:
		s.Counters.Deletes++
		s.write(entry{key: op.Key}, true)
	}
	s.world.AddToHash([]byte(op.Key))
	s.world.AddToHash(op.Value)
	if s.chance(s.Trouble.LostResult) {
		s.Counters.LostResults++
		if s.rng.IntN(2) == 0 {
			return
		}
		r = kv.Event{Kind: kv.Result, ID: op.ID, Status: kv.Unknown}
	}
	newest := s.rev
	s.world.At(s.world.Now()+s.delay(), func() {
		if s.reaches(v) {
			v.in, v.came = append(v.in, r), max(v.came, newest)
		}
	})
}

// begin begins a watch.
func (s *Store) begin(v *View, number uint64) {
	if v.number != number {
		return
	}
	s.Counters.Watches++
	s.views = slices.DeleteFunc(s.views, func(o *View) bool { return o == v })
	s.views = append(s.views, v)
	s.tell(v, kv.Event{Kind: kv.Begin, Store: s.made})
	for _, e := range s.keys {
		if kv.Matches(v.watches, e.key) {
			s.tell(v, kv.Event{Kind: kv.Changed, Key: e.key, Value: e.value, Revision: e.rev})
		}
	}
	s.tell(v, kv.Event{Kind: kv.Current})
}

// tell sends an event of a watch, behind those before it.
func (s *Store) tell(v *View, e kv.Event) {
	number := v.number
	v.latest = max(v.latest, s.world.Now()+s.delay())
	s.world.At(v.latest, func() {
		switch {
		case v.number != number:
		case !s.reaches(v):
			s.breakWatch(v)
		default:
			v.in, v.came = append(v.in, e), max(v.came, e.Revision)
			v.broken = v.broken && e.Kind != kv.Current
		}
	})
}

func (s *Store) reaches(v *View) bool {
	if s.world.IsCut(s.host, v.host) {
		s.Counters.Cut++
		return false
	}
	return true
}

func (s *Store) chance(percent int) bool { return percent > 0 && s.rng.IntN(100) < percent }

func (s *Store) delay() time.Duration {
	d := s.Trouble.Delay/2 + time.Duration(s.rng.Int64N(int64(s.Trouble.Delay)))
	if s.chance(s.Trouble.Slow) && s.Trouble.SlowBy > 0 {
		s.Counters.Slow++
		d += time.Duration(s.rng.Int64N(int64(s.Trouble.SlowBy)))
	}
	return d
}

// View is the store as a machine on a host sees it.
type View struct {
	store   *Store
	host    *simtest.Host
	watches []string
	in, out []kv.Event
	number  uint64 // of the watch; one that broke has another
	asked   time.Duration
	broken  bool
	latest  time.Duration
	retired bool
	came    uint64 // the newest revision that something in in is of, or was
	known   uint64 // and of what Events has returned
}

// watchAgain is how long after it broke, or was asked for, a watch is asked for again.
const watchAgain = time.Second

// View returns a view for a machine on a host. Make one for each boot, and Retire that of the boot before.
func (s *Store) View(h *simtest.Host, m kv.Machine) *View {
	return &View{store: s, host: h, watches: m.Watches(), broken: true, asked: -watchAgain}
}

// Retire ends a view whose machine has crashed: ops under way still happen.
func (v *View) Retire() {
	v.retired = true
	v.number++
	v.store.views = slices.DeleteFunc(v.store.views, func(o *View) bool { return o == v })
}

func (v *View) lost() {
	v.number++
	v.broken = true
	v.asked = v.store.world.Now()
}

// Do implements kv.Store.
func (v *View) Do(op kv.Op) {
	if s := v.store; s.chance(s.Trouble.LostOp) {
		s.Counters.LostOps++
		return
	}
	v.send(request{view: v, op: op, since: v.known})
}

func (v *View) send(r request) {
	s := v.store
	s.world.At(s.world.Now()+s.delay(), func() {
		switch {
		case s.world.IsCut(v.host, s.host):
			s.Counters.Cut++
		case s.host.Program() != nil:
			s.queue = append(s.queue, r)
		}
	})
}

// Events implements kv.Store.
func (v *View) Events() []kv.Event {
	if now := v.store.world.Now(); v.broken && !v.retired && now >= v.asked+watchAgain {
		v.number++
		v.asked = now
		v.send(request{view: v, watch: v.number})
	}
	v.in, v.out, v.known = v.out[:0], v.in, v.came
	return v.out
}
