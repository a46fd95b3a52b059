package actorrep

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// spy is a Relevancy that notes what it is told.
type spy struct{ log []string }

func (s *spy) note(what string, a Actor) { s.log = append(s.log, fmt.Sprint(what, " ", numberOf(a))) }

// numberOf is the N of a pupil or a place.
func numberOf(a Actor) int32 {
	if p, is := a.(*place); is {
		return p.N
	}
	return a.(*pupil).N
}
func (s *spy) AddActor(a Actor)                     { s.note("add", a) }
func (s *spy) RemoveActor(a Actor)                  { s.note("remove", a) }
func (s *spy) OwnerChanged(a Actor)                 { s.note("owner", a) }
func (s *spy) ActorChanged(a Actor)                 { s.note("changed", a) }
func (s *spy) AddPeer(*Peer)                        { s.log = append(s.log, "peer") }
func (s *spy) RemovePeer(*Peer)                     { s.log = append(s.log, "peer went") }
func (s *spy) Update(time.Duration)                 { s.log = append(s.log, "update") }
func (s *spy) ExplainRelevancy(*Peer, Actor) string { return "" }

// took is what it was told since it was asked last.
func (s *spy) took() (log []string) {
	log, s.log = s.log, nil
	return log
}

// sedate is one that needn't be told of actors with an even N.
type sedate struct{ spy }

func (*sedate) Stays(actors []Actor, stays []bool) {
	for i, a := range actors {
		stays[i] = numberOf(a)%2 == 0
	}
}

// TestStaysIsAsked: a Relevancy that says which actors are where they were is told of the others that have changed, whether they are compared in batches or alone.
func TestStaysIsAsked(t *testing.T) {
	s := &sedate{}
	w := NewServer(Config{Relevancy: func(*World) Relevancy { return s }})
	require.NoError(t, w.Register("pupil", (*pupil)(nil)))
	require.NoError(t, w.Register("place", (*place)(nil)))
	all, others := [4]*pupil{}, [4]*place{}
	for i := range all {
		all[i], others[i] = &pupil{N: int32(10 * i)}, &place{N: int32(100 * i)}
		require.NoError(t, w.Spawn(all[i]))
		require.NoError(t, w.Spawn(others[i]))
	}
	require.NotEqual(t, all[0].class.layout.Concurrent(), others[0].class.layout.Concurrent())
	w.Step(time.Second)
	s.took()
	for i, p := range all {
		p.N += int32(i)
		others[i].N += int32(i)
	}
	w.Step(2 * time.Second)
	require.ElementsMatch(t, []string{"changed 11", "changed 33", "changed 101", "changed 303"}, s.took())
}

// settled is a Relevancy that needn't be told of places with an even N, and counts those of which it is asked.
type settled struct {
	*list
	told                spy
	asked, ofComponents atomic.Uint64 // Stays is called on several cores at the same time
}

func (s *settled) Stays(actors []Actor, stays []bool) {
	s.asked.Add(uint64(len(actors)))
	for _, a := range actors {
		if a.base().parent != nil {
			s.ofComponents.Add(1)
		}
	}
	(*sedate)(nil).Stays(actors, stays)
}
func (s *settled) ActorChanged(a Actor) { s.told.note("changed", a) }

// TestCoresSkipWhatIsTold: where the connections mark the changes, the Relevancy is told of the same actors, the same is counted and the same actors go between
// the polled ones and the schedule as on one core.
func TestCoresSkipWhatIsTold(t *testing.T) {
	play := func(cores driver.Cores) (log []string, sums []uint64) {
		r := &settled{}
		s := NewServer(Config{Parallel: cores, Relevancy: func(w *World) Relevancy {
			r.list = newList(w)
			return r
		}})
		s.CompareOnCoresFrom(1)
		require.NoError(t, s.Register("place", (*place)(nil), UpdateFrequency(25), Adaptive(2)))
		for range 2 {
			c := NewClient(Config{})
			require.NoError(t, c.Register("place", (*place)(nil)))
			addLane(t, s, c)
		}
		var all []*place
		for i := range markedAtOnce + 50 {
			a := &place{}
			if all = append(all, a); i%3 == 2 {
				require.NoError(t, s.SpawnIn(all[i-1], a))
			} else {
				require.NoError(t, s.Spawn(a))
			}
		}
		for i := range 300 {
			for k, a := range all {
				if (i+k)%(k%9+1) == 0 && (i < 60 || i > 280) {
					a.N++
				}
			}
			s.Step(time.Duration(i+1) * time.Second / 30)
			sums = append(sums, s.Counters.Compared, s.Counters.Changed, s.Counters.UpdateBits, r.asked.Load(), uint64(len(s.polled)), uint64(s.scheduled.Len()))
		}
		require.Zero(t, r.ofComponents.Load())
		return r.told.took(), sums
	}
	log, sums := play(1)
	require.NotEmpty(t, log)
	for _, cores := range []driver.Cores{2, 4} {
		other, counted := play(cores)
		require.Equal(t, log, other)
		require.Equal(t, sums, counted)
	}
}

// jealous is a Relevancy that destroys actors when it is told of another one.
type jealous struct {
	*list
	rivals []*flag
	told   int
}

func (j *jealous) ActorChanged(Actor) {
	j.told++
	for _, r := range j.rivals {
		_ = j.world.Destroy(r)
	}
}

// flag is compared only when it is set.
type flag struct {
	Base
	N Var[uint8] `net:""`
}

// TestCoresTellOfActorsThatGo: a Relevancy that is told of a changed actor may destroy others that have changed in the same Step, whether these were compared
// already or not.
func TestCoresTellOfActorsThatGo(t *testing.T) {
	for _, cores := range []driver.Cores{1, 2} {
		for _, first := range []int{1, batched - 1, batched + 1} {
			j := &jealous{}
			w := NewServer(Config{Parallel: cores, Relevancy: func(w *World) Relevancy {
				j.list = newList(w)
				return j
			}})
			w.CompareOnCoresFrom(0)
			require.NoError(t, w.Register("flag", (*flag)(nil)))
			var all []*flag
			for range 3 * batched {
				all = append(all, &flag{})
				require.NoError(t, w.Spawn(all[len(all)-1]))
			}
			w.Step(time.Second)
			for _, a := range all {
				a.N.Set(1)
			}
			j.rivals, j.told = all[first:first+batched], 0
			w.Step(2 * time.Second)
			require.Equal(t, len(all)-batched, j.told, "%d cores, from %d on", cores, first)
			require.Equal(t, len(all)-batched, w.Len())
		}
	}
}

// meddler is a Relevancy that does something to another actor when it is told of one.
type meddler struct {
	*list
	told int
	do   func(nth int)
}

func (m *meddler) ActorChanged(Actor) {
	m.told++
	m.do(m.told - 1)
}

// TestCoresAndMeddlers: a Relevancy that is told of a changed actor may destroy, change and spawn others and have them sleep, whether they are compared every Step
// or at their frequency; what comes of it is the same on any number of cores.
func TestCoresAndMeddlers(t *testing.T) {
	const n = 3 * batched
	for name, options := range map[string][]ClassOption{"polled": nil, "scheduled": {UpdateFrequency(30)}} {
		for what, do := range map[string]func(w *World, other *place){
			"destroys": func(w *World, other *place) { _ = w.Destroy(other) },
			"sleep":    func(_ *World, other *place) { _ = other.SetDormant(true) },
			"changes":  func(_ *World, other *place) { other.N++ },
			"spawns":   func(w *World, _ *place) { _ = w.Spawn(&place{}) },
		} {
			play := func(cores driver.Cores) (told int, counters Counters) {
				m := &meddler{do: func(int) {}}
				w := NewServer(Config{Parallel: cores, Relevancy: func(w *World) Relevancy {
					m.list = newList(w)
					return m
				}})
				w.CompareOnCoresFrom(0)
				require.NoError(t, w.Register("place", (*place)(nil), options...))
				for range 2 {
					c := NewClient(Config{})
					require.NoError(t, c.Register("place", (*place)(nil)))
					addLane(t, w, c)
				}
				var all []*place
				for range n {
					all = append(all, &place{})
					require.NoError(t, w.Spawn(all[len(all)-1]))
				}
				w.Step(time.Second)
				m.told = 0
				m.do = func(nth int) { do(w, all[(nth+n/2)%n]) } // the first of those that the game doesn't change
				for i := range 3 {
					for _, a := range all[:n/2] {
						a.N++
					}
					w.Step(time.Duration(2+i) * time.Second)
					w.Consistent(t)
				}
				return m.told, w.Counters
			}
			told, counters := play(1)
			require.NotZero(t, told)
			for _, cores := range []driver.Cores{2, 4} {
				alike, counted := play(cores)
				require.Equal(t, told, alike, "%s %s, %d cores", name, what, cores)
				require.Equal(t, counters, counted, "%s %s, %d cores", name, what, cores)
			}
		}
	}
}

// pupil notes what it is told.
type pupil struct {
	Base
	N    int32                  `net:"notify=OnN"`
	List fastarray.List[uint32] `net:"notify=OnList"`
	Who  netguid.GUID           `net:"notify=OnWho"`
	Push Var[uint8]             `net:""`
	Cond uint8                  `net:"custom"`
	Line [2]float64             `net:"q=0.5"`

	log *[]string
}

func (*pupil) Location() (x, y, z float64) { return 0, 0, 0 }
func (p *pupil) note(what string, args ...any) {
	if p.log != nil {
		*p.log = append(*p.log, fmt.Sprint(append([]any{what, " "}, args...)...))
	}
}
func (p *pupil) OnN(old int32) { p.note("N", old, " ", p.N) }
func (p *pupil) OnList()       { p.note("list of", p.List.Len()) }
func (p *pupil) OnWho()        { p.note("who", p.World().Find(p.Who) != nil) }
func (p *pupil) Init()         { p.N = 7 }
func (p *pupil) Spawned()      { p.note("spawned", p.N) }
func (p *pupil) Destroyed()    { p.note("destroyed", p.N, " ", p.World() == nil) }

// TestRelevancyIsTold is what a Relevancy hears, and when: nothing of components, nor of what was torn off.
func TestRelevancyIsTold(t *testing.T) {
	s := &spy{}
	w := NewServer(Config{Relevancy: func(*World) Relevancy { return s }})
	require.NoError(t, w.Register("pupil", (*pupil)(nil)))
	a, child, late := &pupil{N: 1}, &pupil{N: 2}, &pupil{N: 3}
	p, now := w.newPeer(), time.Duration(0)
	step := func() {
		now += time.Second / 30
		w.Step(now)
	}
	for i, c := range []struct {
		do   func()
		want []string
	}{
		{func() { require.NoError(t, w.Spawn(a)) }, []string{"add 1"}},
		{func() { require.NoError(t, w.SpawnIn(a, child)) }, nil},
		{step, []string{"changed 1"}}, // without connections it needs no update
		{func() {
			p.out = &lane{t: t, peer: p, ids: map[netguid.GUID]uint32{}, flying: map[*view]int{}}
			w.addPeer(p)
		}, []string{"peer"}},
		{step, []string{"update"}},
		{func() { a.N, child.N = 4, 5; step() }, []string{"changed 4", "update"}},
		{func() { a.SetOwner(p) }, []string{"owner 4"}},
		{func() { a.SetOwner(p) }, nil},
		{func() { a.SetAutonomous(true) }, []string{"owner 4"}},
		{func() { a.SetAutonomous(true) }, nil},
		{func() { a.SetPhysics(true) }, []string{"owner 4"}},
		{func() { a.SetPhysics(true) }, nil},
		{func() { a.SetAlwaysRelevant(true) }, []string{"owner 4"}},
		{func() { a.SetOnlyOwner(true) }, []string{"owner 4"}},
		{func() { a.SetCullDistance(5) }, []string{"owner 4"}},
		{func() { child.SetOnlyOwner(true); child.SetAutonomous(true) }, nil},
		{func() { require.NoError(t, w.Spawn(late)); require.NoError(t, w.Destroy(child)) }, []string{"add 3"}},
		{func() { require.NoError(t, late.TearOff()) }, []string{"changed 3", "remove 3"}},
		{func() { require.NoError(t, late.TearOff()); require.NoError(t, w.Destroy(late)) }, nil},
		{func() { w.RemoveConn(p) }, []string{"peer went", "owner 4"}},
		{func() { w.RemoveConn(p) }, nil},
		{func() { require.NoError(t, w.Destroy(a)); require.NoError(t, w.Destroy(a)) }, []string{"remove 4"}},
		{func() { late.SetOnlyOwner(false); late.SetAutonomous(true); late.SetOwner(p) }, nil},
	} {
		c.do()
		require.Equal(t, c.want, s.took(), "%d", i)
		w.Consistent(t)
	}
}

var poke = MulticastRPC(func(_ Call, p *pupil, n uint8) error { p.note("poked", n); return nil }, Reliable)

// pair is a server's world of pupils and a client's, without loss.
type pair struct {
	s, c *World
	l    *lane
	now  time.Duration
	log  []string
}

func newPair(t *testing.T, options ...ClassOption) *pair {
	p := &pair{}
	told := func(what string) func(Actor) {
		return func(a Actor) { p.log = append(p.log, fmt.Sprint(what, " ", a.(*pupil).N)) }
	}
	p.s = NewServer(Config{Failed: func(err error) { t.Error(err) }, RelevantTimeout: -1})
	p.c = NewClient(Config{Failed: func(err error) { t.Error(err) }, Destroyed: told("world: destroyed"), Spawned: func(a Actor) {
		told("world: spawned")(a)
		n := a.(*pupil)
		n.List.OnAdd = func(id fastarray.ID, v uint32) { n.note("added", id, " ", v) }
		n.List.OnChange = func(id fastarray.ID, old, now uint32) { n.note("changed", id, " ", old, " ", now) }
		n.List.OnRemove = func(id fastarray.ID, old uint32) { n.note("removed", id, " ", old) }
	}})
	for _, w := range []*World{p.s, p.c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), append(options, RPCs{"Poke": poke})...))
	}
	p.l = addLane(t, p.s, p.c)
	return p
}

// serve lets a server's Step pass and its client hear of it.
func (p *pair) serve(t *testing.T) {
	p.now += time.Second / 30
	p.s.Step(p.now)
	for range 3 {
		p.l.deliver()
	}
	for a := range p.c.All {
		a.(*pupil).log = &p.log
	}
	p.s.Consistent(t)
	p.c.Consistent(t)
}

// tell is what the client's game is told of that.
func (p *pair) tell(t *testing.T) (log []string) {
	p.c.Step(p.now)
	p.c.Consistent(t)
	log, p.log = p.log, nil
	return log
}

// TestWhatAClientIsTold: each change once between two Steps, with the value before the first, in order; nothing of what came and went between them.
func TestWhatAClientIsTold(t *testing.T) {
	for _, atSpawn := range []bool{false, true} {
		var options []ClassOption
		if atSpawn {
			options = append(options, NotifyAtSpawn())
		}
		p := newPair(t, options...)
		a, b := &pupil{N: 1}, &pupil{N: 2}
		_, err := a.List.Add(10)
		require.NoError(t, err)
		for range 4 {
			p.serve(t)
		}
		serve := func(do ...func()) func() {
			return func() {
				for _, f := range do {
					f()
					p.serve(t)
					p.serve(t)
				}
			}
		}
		first := []string{"spawned 1", "world: spawned 1"}
		if atSpawn {
			first = append(first, "N 7 1", "list of 1")
		}
		back := append([]string{"spawned 9", "world: spawned 9"}, []string{"N 7 9"}...)
		if !atSpawn {
			back = back[:2]
		}
		for i, c := range []struct {
			do   func()
			want []string
		}{
			{serve(), nil},
			{serve(func() { require.NoError(t, p.s.Spawn(a)) }), first},
			{serve(), nil},
			{serve(func() { a.N = 3 }, func() { a.N = 4 }, func() { _, _ = a.List.Add(11) }), []string{"N 1 4", "added 2 11", "list of 2"}},
			{serve(func() { _ = a.List.Set(1, 12) }, func() { _ = a.List.Remove(2) }, func() { a.N = 5 }), []string{"N 4 5", "changed 1 10 12", "removed 2 11", "list of 1"}},
			{serve(func() { require.NoError(t, p.s.Spawn(b)) }, func() { require.NoError(t, p.s.Destroy(b)) }), nil},
			{serve(func() { a.Who = 9999 }), []string{"who false"}},
			{serve(func() { b = &pupil{N: 9}; require.NoError(t, p.s.Spawn(b)); a.Who = b.GUID() }), append(append([]string{}, back...), "who true")},
			{serve(func() { require.NoError(t, p.s.Destroy(b)) }), []string{"destroyed 9 true", "world: destroyed 9"}},
			{serve(func() { a.N = 6 }, func() { require.NoError(t, a.SetDormant(true)) }, func() { a.N = 8; a.FlushDormancy() }), []string{"N 5 8"}},
			{serve(func() { require.NoError(t, a.SetDormant(false)); a.N = 9 }, func() { require.NoError(t, p.s.Destroy(a)) }), []string{"destroyed 9 true", "world: destroyed 9"}},
		} {
			before := p.c.Len()
			c.do()
			require.Equal(t, c.want, p.tell(t), "%d: %d actors before, %d now", i, before, p.c.Len())
		}
		require.Zero(t, p.c.Len())
		require.EqualValues(t, 3, p.c.Counters.Spawned)
		require.EqualValues(t, 2, p.c.Counters.Destroyed)
	}
}

// TestNoRoomToOpen: without room one opening is tried in a Step; a sleeper whose change is withdrawn meanwhile goes on sleeping.
func TestNoRoomToOpen(t *testing.T) {
	p := newPair(t)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	for range 5 {
		p.serve(t)
	}
	require.NoError(t, a.SetDormant(true))
	for range 5 {
		p.serve(t)
	}
	p.l.full = true
	a.Cond = 3
	a.FlushDormancy()
	for range 10 {
		require.NoError(t, p.s.Spawn(&pupil{}))
	}
	p.serve(t)
	before := p.l.opens
	p.serve(t)
	p.serve(t)
	require.Equal(t, before+2, p.l.opens)
	require.NoError(t, a.SetCondition("Cond", false))
	p.l.full = false
	for range 5 {
		p.serve(t)
	}
	require.Equal(t, 11, p.c.Len())
	require.Zero(t, p.c.Find(a.guid).(*pupil).Cond)
	require.EqualValues(t, 11, p.s.Counters.Opened)
	require.NoError(t, a.SetCondition("Cond", true))
	for range 5 {
		p.serve(t)
	}
	require.EqualValues(t, 3, p.c.Find(a.guid).(*pupil).Cond)
	require.EqualValues(t, 12, p.s.Counters.Opened)
}

// TestAsManyCallsAsThereIsRoom: a reliable call is refused when those that wait take all the room.
func TestAsManyCallsAsThereIsRoom(t *testing.T) {
	p := newPair(t)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	for range 5 {
		p.serve(t)
	}
	for i := range uint8(laneRoom) {
		require.NoError(t, poke.Call(a, i))
	}
	var missed *MissedError
	require.ErrorAs(t, poke.Call(a, 99), &missed)
	require.ErrorIs(t, missed.Err, ErrFull)
	require.Equal(t, []*Peer{p.l.peer}, missed.Peers)
	require.EqualValues(t, 1, p.s.Counters.CallsDropped)
	p.tell(t)
	for range 5 {
		p.serve(t)
	}
	require.Equal(t, []string{"poked 0", "poked 1", "poked 2", "poked 3", "poked 4", "poked 5", "poked 6", "poked 7"}, p.tell(t))
}

// TestEveryEighthStep: an actor's rate on a connection stays, however often it is set.
func TestEveryEighthStep(t *testing.T) {
	p := newPair(t)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	for range 5 {
		p.serve(t)
	}
	for _, n := range []int{1, 8, 64, 3, 1} {
		p.l.peer.SetUpdateEvery(a, n)
		require.Equal(t, n, p.l.peer.UpdateEvery(a))
		a.N++
		p.serve(t)
		before := p.s.Counters.Updates
		for range 192 {
			p.l.peer.SetUpdateEvery(a, n)
			a.N++
			p.serve(t)
		}
		require.InDelta(t, 192/n, p.s.Counters.Updates-before, 1, "%d", n)
	}
	require.Zero(t, p.l.peer.UpdateEvery(&pupil{}))
}

// TestSharedAlongAPath: connections of which one lacks a record that the path doesn't use share their bits.
func TestSharedAlongAPath(t *testing.T) {
	p := newPair(t)
	c := NewClient(Config{})
	require.NoError(t, c.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
	other := addLane(t, p.s, c)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	shared := 0
	for i := range 100 {
		a.Line = [2]float64{float64(i), float64(-i)}
		other.drop = i == 60
		v, o := p.l.peer.views[a.base()], other.peer.views[a.base()]
		differ := i > 60 && v.base.older != o.base.older
		p.serve(t)
		for range 3 {
			other.deliver()
		}
		if differ && len(p.s.workers[0].entries) == 2 { // the first is none
			shared++
		}
	}
	require.Greater(t, shared, 10)
	require.LessOrEqual(t, len(p.s.workers[0].entries), 3, "what was encoded is kept for a Step")
	c.Step(p.now)
	require.Equal(t, a.Line, c.Find(a.guid).(*pupil).Line)
}

// TestCoresAndRemovedConnections: acks that come for a connection after RemoveConn are kept nowhere.
func TestCoresAndRemovedConnections(t *testing.T) {
	for _, cores := range []driver.Cores{1, 2} {
		s := NewServer(Config{Parallel: cores})
		require.NoError(t, s.Register("place", (*place)(nil)))
		p := addLane(t, s, NewClient(Config{})).peer
		p.hear(1, true)
		require.Equal(t, int(cores)-1, s.fates, "on one core it is learned at once")
		s.Step(time.Second)
		require.Zero(t, s.fates)
		s.RemoveConn(p)
		p.hear(1, true)
		require.Zero(t, s.fates+len(p.fates))
	}
}

// TestCoresCountWhatHasChanged: how many views are to be told on several cores, by which it is chosen how, is that of the actors that have changed.
func TestCoresCountWhatHasChanged(t *testing.T) {
	s := NewServer(Config{Parallel: driver.Cores(2)})
	s.CompareOnCoresFrom(1)
	require.NoError(t, s.Register("place", (*place)(nil)))
	for range 2 {
		c := NewClient(Config{})
		require.NoError(t, c.Register("place", (*place)(nil)))
		addLane(t, s, c)
	}
	var all []*place
	for range 100 {
		a := &place{}
		require.NoError(t, s.Spawn(a))
		all = append(all, a)
	}
	for step := range 10 {
		for _, a := range all[:step*step] {
			a.N++
		}
		s.Step(time.Duration(step) * time.Second / 30)
		if told := 0; step > 2 {
			for _, n := range s.compares.told {
				told += n
			}
			require.Equal(t, step*step*2, told)
		}
	}
}

// TestCoresAndNewConnections: a connection that comes while a Step on several cores tells of changes gets all, and the others too.
func TestCoresAndNewConnections(t *testing.T) {
	s := NewServer(Config{Parallel: driver.Cores(2)})
	s.CompareOnCoresFrom(1)
	var clients []*World
	var lanes []*lane
	join := func() {
		c := NewClient(Config{})
		require.NoError(t, c.Register("place", (*place)(nil)))
		clients, lanes = append(clients, c), append(lanes, addLane(t, s, c))
	}
	require.NoError(t, s.Register("place", (*place)(nil)))
	join()
	join()
	var all []*place
	for range 100 {
		a := &place{}
		require.NoError(t, s.Spawn(a))
		all = append(all, a)
	}
	now := time.Duration(0)
	come := false
	s.OnValues(func(Actor) {
		if come {
			come = false
			join()
		}
	})
	for i := range 30 {
		now += time.Second / 30
		come = i == 10 || i == 11
		for _, a := range all {
			a.N++
		}
		s.Step(now)
		for _, l := range lanes {
			l.deliver()
			l.client.Step(now)
		}
		s.Consistent(t)
	}
	for range 5 {
		now += time.Second / 30
		s.Step(now)
		for _, l := range lanes {
			l.deliver()
			l.client.Step(now)
		}
	}
	require.Len(t, clients, 4)
	for i, c := range clients {
		require.Equal(t, 100, c.Len(), "client %d", i)
		for a := range c.All {
			require.EqualValues(t, 30, a.(*place).N, "client %d", i)
		}
	}
}

// watcher is an Observer that notes what it is told.
type watcher struct{ log []string }

func (o *watcher) Stepping() {}
func (o *watcher) Opening(_ channel.Conn, id netguid.GUID, _ uint32, units layout.Mask) {
	o.log = append(o.log, fmt.Sprintf("opening %v %b", id, units))
}
func (o *watcher) Sent(_ channel.Conn, _ int64, records []bridge.Sent) {
	for _, r := range records {
		o.log = append(o.log, fmt.Sprintf("sent %v %b %s", r.Actor, r.Units, r.Waited))
	}
}
func (o *watcher) Carried(_ channel.Conn, _ uint32, _ int64, units layout.Mask) {
	o.log = append(o.log, fmt.Sprintf("carried %b", units))
}
func (o *watcher) Closing(_ channel.Conn, _ uint32, reason channel.CloseReason) {
	o.log = append(o.log, fmt.Sprintf("closing %v", reason))
}
func (o *watcher) Set(_ channel.Conn, id netguid.GUID, units layout.Mask) {
	o.log = append(o.log, fmt.Sprintf("set %v %b", id, units))
}
func (o *watcher) Unsaid(id netguid.GUID, _ string, _ *layout.Layout, units layout.Mask, sleeps bool) {
	if units != 0 {
		o.log = append(o.log, fmt.Sprintf("unsaid %v %b %v", id, units, sleeps))
	}
}

func (o *watcher) Waits(bridge.Wait) bool  { return false }
func (o *watcher) Why(bridge.Wait, string) {}
func (o *watcher) Room() bool              { return false }
func (o *watcher) Waited(channel.Conn)     {}

func (o *watcher) Called(c bridge.Call) {
	o.log = append(o.log, fmt.Sprintf("called %v %s.%s packet %d %v %v %s", c.Actor, c.Class, c.Procedure, c.Packet, c.Reliable, c.Came, c.Refused))
}
func (o *watcher) Corrected(_ channel.Conn, id netguid.GUID, size float64, _ []string) {
	o.log = append(o.log, fmt.Sprintf("corrected %v %v", id, size))
}

// TestUnsaid: an observer hears of values that were set and nobody is told: those of sleepers, of Manual classes and of setters' fields.
func TestUnsaid(t *testing.T) {
	for _, manual := range []bool{false, true} {
		o := &watcher{}
		w := NewServer(Config{})
		bridge.Observe.(func(*World, bridge.Observer))(w, o)
		var options []ClassOption
		if manual {
			options = append(options, Manual())
		}
		require.NoError(t, w.Register("pupil", (*pupil)(nil), options...))
		now := time.Duration(0)
		took := func(steps int) (log []string) {
			for range steps {
				now += time.Second / 30
				w.Step(now)
			}
			log, o.log = o.log, nil
			return log
		}
		var all []*pupil
		for range 2 * unsaidActors {
			a := &pupil{}
			require.NoError(t, w.Spawn(a))
			all = append(all, a)
		}
		require.Empty(t, took(4))
		a := all[5]
		a.N = 3
		if manual {
			require.Equal(t, []string{"unsaid " + a.guid.String() + " 1 false"}, took(2), "each is looked at once in two Steps")
			a.MarkDirty()
			require.NoError(t, a.SetUpdateFrequency(0.5))
			require.Empty(t, took(2))
			a.N = 6
			a.MarkDirty()
			require.Empty(t, took(20), "it is marked, and its turn comes")
			require.NoError(t, a.SetUpdateFrequency(0))
		} else {
			require.NoError(t, a.SetUpdateFrequency(2))
			require.Empty(t, took(4))
			a.N = 2
			require.Empty(t, took(40), "its turn comes by itself")
			require.NoError(t, a.SetUpdateFrequency(0))
		}
		require.Empty(t, took(4))
		require.NoError(t, a.SetDormant(true))
		require.Empty(t, took(4))
		a.N = 4
		require.Equal(t, []string{"unsaid " + a.guid.String() + " 1 true", "unsaid " + a.guid.String() + " 1 true"}, took(4))
		a.FlushDormancy()
		require.Empty(t, took(4))
		a.N = 5
		require.NoError(t, a.TearOff())
		require.NoError(t, w.Destroy(all[7]))
		require.Empty(t, took(4))
		b := all[len(all)-1]
		require.NoError(t, b.SetDormant(true))
		require.Empty(t, took(2))
		b.N = 6
		require.Len(t, took(8), 4, "those that aren't looked at take no time")
	}
}

// TestCallsAreObserved: an observer at a client hears of a call that came.
func TestCallsAreObserved(t *testing.T) {
	hint := MulticastRPC(func(_ Call, p *pupil, n uint8) error { return nil })
	to := &watcher{}
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Hint": hint}))
	}
	bridge.Observe.(func(*World, bridge.Observer))(c, to)
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	a := &pupil{}
	require.NoError(t, s.Spawn(a))
	for range 5 {
		p.serve(t)
	}
	to.log = nil
	require.NoError(t, hint.Call(a, 3))
	p.serve(t)
	require.Len(t, to.log, 1)
	require.Contains(t, to.log[0], "pupil.Hint packet 0 false true ")
}

// TestDestroyTakesComponents: an actor's end is that of all its components, at both ends.
func TestDestroyTakesComponents(t *testing.T) {
	p := newPair(t)
	a := &pupil{N: 1}
	require.NoError(t, p.s.Spawn(a))
	for range 3 {
		require.NoError(t, p.s.SpawnIn(a, &pupil{N: 2}))
	}
	for range 5 {
		p.serve(t)
	}
	require.Equal(t, 4, p.c.Len())
	require.NoError(t, p.s.Destroy(a))
	require.Zero(t, p.s.Len())
	for range 5 {
		p.serve(t)
	}
	p.tell(t)
	require.Zero(t, p.c.Len())
}

// TestTimesOfLateFrames: a chunk says little of its time also in a world that has run for long.
func TestTimesOfLateFrames(t *testing.T) {
	p := newPair(t)
	p.s.SetFrame(1<<32 - 20)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	for range 10 {
		a.N++
		p.serve(t)
	}
	before := p.l.far
	for range 100 {
		a.N++
		p.serve(t)
	}
	require.Equal(t, before, p.l.far)
	require.Equal(t, a.N, p.c.Find(a.guid).(*pupil).N)
}

// TestWhyItWaits: Explain repeats of a waiting actor what held it back, and nothing that is over.
func TestWhyItWaits(t *testing.T) {
	p := newPair(t)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	for range 5 {
		p.serve(t)
	}
	v := p.l.peer.views[a.base()]
	before := *v
	v.flags, v.dirty = v.flags|pending, v.allowed
	for _, r := range []Reason{ReasonLost, ReasonStarved, ReasonNoRoom} {
		v.reason = r
		require.Equal(t, r, p.s.Explain(p.l.peer, a).Reason)
	}
	v.reason = ReasonOpening
	require.Equal(t, ReasonPending, p.s.Explain(p.l.peer, a).Reason)
	*v = before
}

// TestWhyAndHowMany: Explain and the counters say what happens to an actor that waits, is refused room, sleeps or loses its connection.
func TestWhyAndHowMany(t *testing.T) {
	p := newPair(t)
	a, b := &pupil{}, &pupil{}
	why := func(a *pupil) Reason { return p.s.Explain(p.l.peer, a).Reason }
	for range 4 {
		p.serve(t)
	}
	p.l.starved = true
	require.NoError(t, p.s.Spawn(a))
	p.serve(t)
	require.Equal(t, ReasonWaiting, why(a))
	require.Zero(t, p.s.Explain(p.l.peer, a).Budget)
	p.l.starved, p.l.full = false, true
	require.NoError(t, p.s.Spawn(b))
	before := p.s.Counters.Delayed
	p.serve(t)
	require.EqualValues(t, 2, p.s.Counters.Delayed-before)
	require.Equal(t, ReasonNoRoom, why(a))
	require.Equal(t, p.l.bits, p.s.Explain(p.l.peer, a).Budget)
	require.Equal(t, ReasonUpToDate, p.s.Explain(p.s.Local(), a).Reason)
	p.l.full = false
	for range 3 {
		p.serve(t)
	}
	require.Equal(t, ReasonUpToDate, why(a))
	require.ErrorIs(t, a.SetCondition("N", false), ErrNotCustom)

	require.NoError(t, b.SetDormant(true))
	for range 30 {
		p.serve(t)
	}
	require.NoError(t, b.SetDormant(true)) // it sleeps already
	p.serve(t)
	require.Equal(t, ReasonDormant, why(b))
	require.Greater(t, p.s.Explain(p.l.peer, b).Dormant, time.Second)

	p.l.full = true
	c := &pupil{}
	require.NoError(t, p.s.Spawn(c))
	p.serve(t)
	for n := range uint8(3) {
		require.NoError(t, poke.Call(c, n))
	}
	before = p.s.Counters.CallsDropped
	p.s.RemoveConn(p.l.peer)
	require.EqualValues(t, 3, p.s.Counters.CallsDropped-before)
	require.Len(t, p.s.unheld.list, 3, "the next calls use their memory")
	p.s.Consistent(t)
}

// TestStarvedForBandwidth: the actors for which a Step had no bandwidth say so, and such a Step counts once; one in which everything had some doesn't.
func TestStarvedForBandwidth(t *testing.T) {
	p := newPair(t)
	all := p.newPupils(t, 100)
	p.serves(t, 3)
	set := func(n int) (starved int) {
		for i, a := range all[:n] {
			a.N += int32(i + 1)
			a.Line = [2]float64{float64(a.N), float64(-i)}
		}
		before := p.s.Counters.Saturated
		p.serve(t)
		for _, a := range all {
			if e := p.s.Explain(p.l.peer, a); e.Reason == ReasonStarved {
				starved++
			} else {
				require.Contains(t, []Reason{ReasonUpToDate, ReasonInFlight}, e.Reason, e.Text)
				require.Zero(t, e.Waiting, "nothing of it waits")
			}
		}
		require.Equal(t, starved > 0, p.s.Counters.Saturated > before)
		require.LessOrEqual(t, p.s.Counters.Saturated-before, uint64(1))
		return starved
	}
	require.Zero(t, set(0))
	require.Zero(t, set(100))
	p.l.scarce = true
	require.Zero(t, set(2))
	most := set(100)
	require.Greater(t, most, 20)
	require.Less(t, most, 99)
	before := p.s.Counters.Saturated
	for steps := uint64(1); ; steps++ {
		if left := set(0); left == 0 {
			break
		} else {
			require.Less(t, left, most)
			require.Equal(t, before+steps, p.s.Counters.Saturated)
		}
	}
	p.l.starved, p.l.scarce = true, false
	require.Equal(t, 100, set(100))
	p.l.starved = false
	require.Zero(t, set(0))
	for _, a := range all {
		require.Equal(t, a.N, p.c.Find(a.guid).(*pupil).N)
	}
}

// TestNothingNeedless: no record without values, no values with a role, no element of a list twice, no component out of its actor's rhythm.
func TestNothingNeedless(t *testing.T) {
	p := newPair(t)
	a := &pupil{}
	for n := range uint32(50) {
		_, err := a.List.Add(n)
		require.NoError(t, err)
	}
	require.NoError(t, p.s.Spawn(a))
	for range 6 {
		p.serve(t)
	}
	v := p.l.peer.views[a.base()]
	_, err := a.List.Add(50)
	require.NoError(t, err)
	p.serve(t)
	require.Less(t, v.lastBits, int32(150), "the client has the others")

	p.l.starved = true
	a.Cond = 3
	p.serve(t)
	require.Equal(t, ReasonStarved, p.s.Explain(p.l.peer, a).Reason)
	require.NoError(t, a.SetCondition("Cond", false))
	p.l.starved = false
	chunks, updates := len(p.l.chunks), p.s.Counters.Updates
	p.serve(t)
	require.Len(t, p.l.chunks, chunks)
	require.Equal(t, updates, p.s.Counters.Updates)

	a.N++
	a.SetOwner(p.l.peer)
	p.serve(t)
	require.Equal(t, updates+1, p.s.Counters.Updates)
	require.True(t, p.c.Find(a.guid).(*pupil).IsOwned())
	require.Equal(t, a.N, p.c.Find(a.guid).(*pupil).N)

	p.l.peer.SetUpdateEvery(a, 8)
	child := &pupil{}
	require.NoError(t, p.s.SpawnIn(a, child))
	p.serve(t)
	require.Equal(t, 8, p.l.peer.UpdateEvery(child))
}

// TestTheRestOfAPacket: the first chunk of a Step goes into the packet under way if a quarter of one is left there.
func TestTheRestOfAPacket(t *testing.T) {
	p := newPair(t)
	all := p.newPupils(t, 600)
	p.serves(t, 4)
	for i, free := range []int{4000, lanePacket / 4, lanePacket/4 - 1, lanePacket} {
		for n, a := range all {
			a.N = int32(i*100000 + n*7)
		}
		p.l.free, p.l.chunks = free, nil
		p.serve(t)
		require.Greater(t, len(p.l.chunks), 1)
		if free < lanePacket/4 {
			free = lanePacket
		}
		require.InDelta(t, free-100, p.l.chunks[0], 100, "%d", free)
	}
}

// TestLargerThanTheRestOfAPacket: a record that doesn't fit what is left of the packet under way, but fits an empty one, goes into the next packet, and isn't
// sent reliably.
func TestLargerThanTheRestOfAPacket(t *testing.T) {
	p := newPair(t)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	for range 6 {
		p.serve(t)
	}
	sent := p.s.Counters
	for n := range 130 {
		_, err := a.List.Add(uint32(1<<20 + n))
		require.NoError(t, err)
	}
	p.l.free, p.l.chunks = lanePacket/4, nil
	p.serve(t)
	require.Len(t, p.l.chunks, 1)
	require.Greater(t, p.l.chunks[0], lanePacket/2)
	require.Equal(t, sent.Updates+1, p.s.Counters.Updates)
	require.Equal(t, sent.Large, p.s.Counters.Large)
	p.serve(t)
	require.Equal(t, 130, p.c.Find(a.guid).(*pupil).List.Len())
}

// TestEveryNthStep: SetUpdateEvery(a, n) has an actor that changes in each Step sent in every n-th, from the smallest n on.
func TestEveryNthStep(t *testing.T) {
	for n := range 5 {
		p := newPair(t)
		a := p.newPupil(t)
		p.l.peer.SetUpdateEvery(a, n)
		p.serves(t, 8)
		before := p.s.Counters.Updates
		for range 60 {
			a.N++
			p.serve(t)
		}
		require.EqualValues(t, 60/max(n, 1), p.s.Counters.Updates-before, "every %d", n)
	}
}

// TestRecordsInFlight: a connection that acks nothing is sent no more records when maxInFlight are under way, Explain says so, and it goes on when they have arrived.
func TestRecordsInFlight(t *testing.T) {
	p := newPair(t)
	all := p.newPupils(t, 2000)
	p.serves(t, 4)
	sent := &p.l.peer.sent
	for n := range 2 * maxInFlight / len(all) {
		for _, a := range all {
			a.N = int32(n)
		}
		p.now += time.Second / 30
		p.s.Step(p.now)
	}
	require.GreaterOrEqual(t, sent.tail-sent.head, int64(maxInFlight))
	require.Less(t, sent.tail-sent.head, int64(maxInFlight+len(all)), "the Step in which they became so many")
	require.Equal(t, ReasonStarved, p.s.Explain(p.l.peer, all[0]).Reason)
	for range 20 {
		p.serve(t)
	}
	for _, a := range all {
		require.Equal(t, a.N, p.c.Find(a.guid).(*pupil).N)
	}
}

// TestWhoIsReferredTo: a reference is notified when its actor comes back, also when the one that refers to it has slept meanwhile.
func TestWhoIsReferredTo(t *testing.T) {
	p := newPair(t)
	a, b := &pupil{N: 1}, &pupil{N: 2}
	require.NoError(t, p.s.Spawn(a))
	require.NoError(t, p.s.Spawn(b))
	a.Who = b.GUID()
	for range 6 {
		p.serve(t)
	}
	require.NoError(t, a.SetDormant(true))
	for range 6 {
		p.serve(t)
	}
	require.Equal(t, asleep, p.l.peer.views[a.base()].state)
	require.NoError(t, a.SetDormant(false))
	a.N = 3
	for range 4 {
		p.serve(t)
	}
	p.tell(t)
	b.SetOnlyOwner(true)
	for range 4 {
		p.serve(t)
	}
	require.Equal(t, []string{"destroyed 2 true", "world: destroyed 2"}, p.tell(t))
	b.SetOnlyOwner(false)
	for range 4 {
		p.serve(t)
	}
	require.Contains(t, p.tell(t), "who true")
}

// TestCallsOfALackingClass: calls that wait for an actor whose class the client turns out to lack are dropped and told, others not.
func TestCallsOfALackingClass(t *testing.T) {
	var failed []error
	s := NewServer(Config{Failed: func(err error) { failed = append(failed, err) }})
	require.NoError(t, s.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
	require.NoError(t, s.Register("place", (*place)(nil)))
	c := NewClient(Config{})
	l := addLane(t, s, c)
	a := &pupil{}
	require.NoError(t, s.Spawn(a))
	require.NoError(t, s.Spawn(&pupil{}))
	require.NoError(t, s.Spawn(&place{}))
	s.Step(time.Second)
	require.NoError(t, poke.Call(a, 1))
	require.NoError(t, poke.Call(a, 2))
	l.peer.dropLacking()
	require.Empty(t, failed)
	require.Len(t, l.peer.views[a.base()].calls, 2)
	l.peer.lacks = []bool{true, false}
	l.peer.dropLacking()
	require.Len(t, failed, 2)
	require.ErrorIs(t, failed[0], ErrNoClass)
	require.EqualValues(t, 2, s.Counters.CallsDropped)
	s.Consistent(t)

	failed = nil
	bridge.Report.(func(*World, error))(s, ErrNoAnswer)
	require.Equal(t, []error{ErrNoAnswer}, failed, "at once, as nothing is in progress")
}

// reel is a Tape with room for all.
type reel struct {
	n     uint32
	kinds []bridge.Kind
	ended bool
}

func (r *reel) Begin(time.Duration) (frame, ended bool) {
	r.n++
	return !r.ended, r.ended
}
func (r *reel) Number() uint32 { return r.n }
func (r *reel) Put(kind bridge.Kind, _ uint32, _ []byte, _ int) bool {
	r.kinds = append(r.kinds, kind)
	return true
}
func (r *reel) Budget() int   { return 1 << 20 }
func (r *reel) OpenRoom() int { return 10 }
func (r *reel) End()          {}
func (r *reel) Fail(error)    {}

// TestTape: a recording says which places it has copied; once it has ended it doesn't note who disappears.
func TestTape(t *testing.T) {
	s, tape := NewServer(Config{}), &reel{}
	require.NoError(t, s.Register("place", (*place)(nil)))
	r := newRecording(s, tape, nil, true).(*recording)
	a, b := &place{N: 1}, &place{N: 2}
	require.NoError(t, s.Spawn(a))
	require.NoError(t, s.Spawn(b))
	for now := range time.Duration(4) {
		s.Step(now * time.Second)
	}
	require.EqualValues(t, 3, r.Places())
	require.NoError(t, s.Destroy(a))
	s.Step(4 * time.Second)
	tape.kinds = nil
	for place, want := range []bool{false, false, true} {
		copied, ok := r.Copy(uint32(place))
		require.True(t, ok)
		require.Equal(t, want, copied, "%d", place)
	}
	require.Equal(t, []bridge.Kind{bridge.Copy}, tape.kinds)
	require.NoError(t, s.Spawn(&place{N: 3}))
	s.Step(5 * time.Second)
	require.NotZero(t, cap(r.fresh))
	for _, v := range r.fresh[:cap(r.fresh)] {
		require.Nil(t, v)
	}
	require.EqualValues(t, 3, r.Places(), "the place of the one that is gone is taken again")
	require.NoError(t, b.SetDormant(true))
	for now := range time.Duration(4) {
		s.Step((6 + now) * time.Second)
	}
	tape.ended = true
	require.NoError(t, s.Destroy(b))
	require.Len(t, r.peer.gone, 1)
	s.Step(10 * time.Second)
	require.Empty(t, r.peer.gone)
}

// TestMemoryIsGivenBack: a connection gives back what it hasn't needed for a while, a World the places of actors that are gone.
func TestMemoryIsGivenBack(t *testing.T) {
	p := newPair(t)
	l := p.l.peer
	l.pending = append(make([]*view, 0, 10000), l.pending...)
	var all []*pupil
	for range 200 {
		all = append(all, &pupil{})
		require.NoError(t, p.s.Spawn(all[len(all)-1]))
	}
	for _, a := range all[:150] {
		require.NoError(t, p.s.Destroy(a))
		require.True(t, len(p.s.actors) <= 64 || p.s.live >= len(p.s.actors)/2, "%d in a list of %d", p.s.live, len(p.s.actors))
	}
	for range 2*trimEvery + 4 {
		p.now += time.Second / 30
		p.s.Step(p.now)
		p.l.deliver()
	}
	require.Less(t, cap(l.pending), 1000)
}

// TestBeforeValues: before an actor's values are set, each time, those that came earlier are there.
func TestBeforeValues(t *testing.T) {
	p := newPair(t)
	var log []string
	took := func() (took []string) {
		for range 3 {
			p.serve(t)
		}
		took, log = log, nil
		return took
	}
	bridge.BeforeValues.(func(*World, func(Actor)))(p.c, func(a Actor) { log = append(log, fmt.Sprint("before ", a.(*pupil).N)) })
	p.c.OnValues(func(a Actor) { log = append(log, fmt.Sprint("now ", a.(*pupil).N)) })
	a := &pupil{N: 1}
	require.NoError(t, p.s.Spawn(a))
	require.Equal(t, "now 1", took()[1])
	a.N = 2
	require.Equal(t, []string{"before 1", "now 2"}, took())
	require.NoError(t, a.SetDormant(true))
	require.Empty(t, took())
	a.N = 3
	a.FlushDormancy()
	require.Equal(t, []string{"before 2", "now 3"}, took(), "of a sleeper that opens again")
}

// TestSleepersAreCalled: a reliable call to a sleeper opens it in the same Step, and nothing else is opened for a call.
func TestSleepersAreCalled(t *testing.T) {
	p := newPair(t)
	a, b := &pupil{}, &pupil{}
	require.NoError(t, p.s.Spawn(a))
	require.NoError(t, p.s.Spawn(b))
	require.NoError(t, a.SetDormant(true))
	for range 6 {
		p.serve(t)
	}
	p.tell(t)
	v, w := p.l.peer.views[a.base()], p.l.peer.views[b.base()]
	require.Equal(t, []viewState{asleep, open}, []viewState{v.state, w.state})
	require.NoError(t, poke.Call(a, 3))
	require.NoError(t, poke.Call(b, 4))
	require.True(t, v.inOpening)
	require.False(t, w.inOpening)
	opens := p.l.opens
	p.s.Step(p.now)
	require.Equal(t, opens+1, p.l.opens)
	for range 3 {
		p.serve(t)
	}
	require.Equal(t, []string{"poked 3", "poked 4"}, p.tell(t))

	// An owner that changes back and forth has nothing to be told.
	b.SetOwner(p.l.peer)
	b.SetOwner(nil)
	require.Len(t, p.l.peer.speaking, 1)
	p.serve(t)
	require.Empty(t, p.l.peer.speaking)
	require.False(t, w.inSpeaking)
}

// TestComponentsComeBehindTheirActor: a component that is more urgent than its actor is opened behind it all the same.
func TestComponentsComeBehindTheirActor(t *testing.T) {
	p := newPair(t)
	for range 2 * stepChannels {
		require.NoError(t, p.s.Spawn(&pupil{}))
	}
	a, child, grandchild := &pupil{N: 1}, &pupil{N: 2}, &pupil{N: 3}
	a.SetPriority(0.001)
	child.SetPriority(0.002)
	grandchild.SetPriority(1000)
	require.NoError(t, p.s.Spawn(a))
	require.NoError(t, p.s.SpawnIn(a, child))
	require.NoError(t, p.s.SpawnIn(child, grandchild))
	some := 0
	for range 8 {
		p.now += time.Second / 30
		before := p.s.Counters.Opened
		p.s.Step(p.now)
		p.l.deliver()
		require.LessOrEqual(t, p.s.Counters.Opened-before, uint64(stepChannels+2), "also in the Step in which the client is ready")
		c := p.c.Find(grandchild.guid)
		if c == nil {
			continue
		}
		if p.c.Len() < p.s.Len() {
			some++
		}
		require.NotNil(t, c.base().parent)
		require.NotNil(t, c.base().parent.parent)
		require.Same(t, p.c.Find(a.guid), c.base().Parent().base().Parent())
	}
	require.Positive(t, some, "it was among the first")
	require.Equal(t, p.s.Len(), p.c.Len())

	// They stop to be relevant together, and come back together.
	p.s.cfg.RelevantTimeout = time.Second
	for _, on := range []bool{true, false} {
		a.SetOnlyOwner(on)
		p.serve(t)
		for _, b := range []*pupil{a, child, grandchild} {
			require.Equal(t, !on, p.l.peer.IsRelevant(b))
			require.Equal(t, on, p.s.Explain(p.l.peer, b).Reason == ReasonLeaving)
			require.True(t, p.l.peer.Has(b))
		}
	}
}

// TestCallsBeforeTheFirstStep: a multicast that is made before anybody sees the actor waits for those that will, but not for clients without its class.
func TestCallsBeforeTheFirstStep(t *testing.T) {
	p := newPair(t)
	without := NewClient(Config{})
	require.NoError(t, without.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
	other := addLane(t, p.s, without)
	other.peer.lacks = []bool{true}
	for range 4 {
		p.serve(t)
	}
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	for n := range uint8(MaxWaitingCalls) {
		require.NoError(t, poke.Call(a, n))
	}
	require.ErrorIs(t, poke.Call(a, 0), ErrFull)
	p.s.Step(p.now)
	require.Len(t, p.l.peer.views[a.base()].calls, MaxWaitingCalls-p.sent(a))
	require.Empty(t, other.peer.views[a.base()].calls)
	require.Empty(t, p.s.early)
	for range 20 {
		p.serve(t)
	}
	require.Len(t, p.tell(t), 2+MaxWaitingCalls)
	require.Zero(t, p.s.Counters.CallsDropped)
}

// sent is how many reliable calls of an actor were sent.
func (p *pair) sent(*pupil) int { return int(p.s.Counters.CallsSent) }

var hail = MulticastRPC(func(Call, *place, uint16) error { return nil })

// TestEveryBitIsCounted: the rows of Attribution are the bits of openings and records that were sent, but for the time of a Step; that is short as soon
// as the client has acked something. What connections share is encoded once.
func TestEveryBitIsCounted(t *testing.T) {
	s := NewServer(Config{})
	var lanes []*lane
	for _, w := range []*World{s, NewClient(Config{}), NewClient(Config{}), NewClient(Config{})} {
		require.NoError(t, w.Register("place", (*place)(nil), RPCs{"Hail": hail}))
		if w != s {
			lanes = append(lanes, addLane(t, s, w))
		}
	}
	var all []*place
	for range 40 {
		a := &place{N: 5}
		require.NoError(t, s.Spawn(a))
		all = append(all, a)
	}
	now := time.Duration(0)
	for i := range 40 {
		for j, a := range all {
			if a.N += int32(i * j); i > 10 && j%7 == 0 {
				require.NoError(t, hail.Call(a, uint16(i)))
			}
		}
		now += time.Second / 30
		s.Step(now)
		s.Consistent(t)
		if i > 10 {
			require.Len(t, s.workers[0].entries, 1+40)
		}
		for _, l := range lanes {
			l.deliver()
		}
	}
	for i, l := range lanes {
		want := uint64(l.sent[bridge.Open] + l.sent[bridge.Records] - l.times)
		sum, rows := uint64(0), map[string]Cost{}
		for _, c := range l.peer.Attribution(0) {
			sum += c.Bits
			rows[c.Name] = c
		}
		require.Equal(t, want, sum, "%d", i)
		require.Zero(t, rows["packets, bunches, acks and resends"])
		require.EqualValues(t, 29*6, rows["Hail()"].Sent)
		require.EqualValues(t, 29*6*(8+8+8), rows["Hail()"].Bits)
		require.Less(t, rows["record heads"].Bits, uint64(s.Counters.Updates/3*9))
		require.Greater(t, rows["opening heads"].Bits, uint64(40*40))
		require.LessOrEqual(t, l.far, 3, "of %d chunks", len(l.chunks))
		last := l.peer.Attribution((want + 800) / 8)
		require.Equal(t, Cost{Name: "packets, bunches, acks and resends", Bits: (want+800)/8*8 - want}, last[len(last)-1])
	}
	require.EqualValues(t, 29*6*3, s.Counters.CallsSent)
}

// crew is an Executor that counts what it is given.
type crew struct{ runs, calls int }

func (c *crew) Workers() int { return 3 }
func (c *crew) Run(n int, f func(i, worker int)) {
	c.runs++
	for i := range n {
		c.calls++
		f(n-1-i, i%3)
	}
}

// TestWorkForCores: a Step with much to send for several connections is done on several cores, others on one.
func TestWorkForCores(t *testing.T) {
	c := &crew{}
	s := NewServer(Config{Parallel: c})
	require.NoError(t, s.Register("place", (*place)(nil)))
	var all []*place
	for range fewForCores {
		a := &place{}
		require.NoError(t, s.Spawn(a))
		all = append(all, a)
	}
	now := time.Duration(0)
	var lanes []*lane
	step := func() {
		now += time.Second / 30
		s.Step(now)
		for _, l := range lanes {
			l.deliver()
		}
	}
	join := func() {
		w := NewClient(Config{})
		require.NoError(t, w.Register("place", (*place)(nil)))
		lanes = append(lanes, addLane(t, s, w))
		for range 6 {
			step()
		}
	}
	change := func(n int) (runs, calls int) {
		for _, a := range all[:n] {
			a.N++
		}
		before := *c
		step()
		return c.runs - before.runs, c.calls - before.calls
	}
	join()
	runs, _ := change(fewForCores)
	require.Zero(t, runs, "one connection")
	join()
	runs, calls := change(fewForCores / 2)
	require.Equal(t, []int{1, 2}, []int{runs, calls})
	runs, _ = change(fewForCores/2 - 1)
	require.Zero(t, runs, "too little")
	for _, l := range lanes {
		for range 4 {
			step()
		}
		for i, a := range all {
			require.Equal(t, a.N, l.client.Find(a.guid).(*place).N, "%d", i)
		}
	}
}

// TestPeaksAreKept: a connection keeps room for what it needed lately, and gives it back when it hasn't for a while.
func TestPeaksAreKept(t *testing.T) {
	p := newPair(t)
	var all []*pupil
	for range 700 {
		all = append(all, &pupil{})
		require.NoError(t, p.s.Spawn(all[len(all)-1]))
	}
	step := func() {
		p.now += time.Second / 30
		p.s.Step(p.now)
		p.l.deliver()
	}
	for p.c.Len() < len(all) {
		step()
	}
	l := p.l.peer
	caps := func() []int {
		return []int{cap(l.pending), cap(l.batch.ranks), cap(l.batch.buf), len(l.sent.ring), cap(l.batch.chunks), cap(l.settling), cap(l.opening), cap(l.sent.packets)}
	}
	untilTrim := func(n int) {
		for l.peaks.steps != trimEvery-n {
			step()
		}
	}
	untilTrim(20)
	for i, a := range all {
		a.N, a.Line = int32(i*1000), [2]float64{float64(i), 3}
	}
	p.l.starved = true // they are ranked when there is bandwidth for some
	step()
	p.l.starved, p.l.scarce = false, true
	for range 3 {
		step()
	}
	p.l.scarce = false
	for range 3 {
		step()
	}
	for _, a := range all {
		require.NoError(t, a.SetDormant(true))
	}
	for range 4 {
		step()
	}
	for _, a := range all {
		a.N++
		a.FlushDormancy()
	}
	untilTrim(1)
	before := caps()
	step()
	require.Equal(t, before, caps(), "at the trim")
	require.Greater(t, before[0], 600)
	require.Greater(t, before[1], 600)
	untilTrim(1)
	require.Equal(t, before[:2], caps()[:2])
	for range 2 {
		step()
	}
	now := caps()
	require.Less(t, max(now[0], now[1], now[3], now[4]), 300, "%v of %v", now, before)
	require.Greater(t, before[2], 2000)
	require.Less(t, now[2], 1000, "of a connection that has gone quiet after much")
}

// TestNotSpawned: what needs an actor's World says so of one that isn't in any; the rest is kept for it.
func TestNotSpawned(t *testing.T) {
	w, c := NewServer(Config{}), NewClient(Config{})
	for _, o := range []*World{w, c} {
		require.NoError(t, o.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}, Priority(2), CullDistance(9)))
	}
	a, gone := &pupil{}, &pupil{}
	require.NoError(t, w.Spawn(gone))
	require.NoError(t, w.Destroy(gone))
	for _, a := range []*pupil{a, gone} {
		for i, err := range []error{a.SetUpdateFrequency(1), a.SetDormant(true), a.TearOff(), poke.Call(a, 1), w.SpawnIn(a, &pupil{}), w.SpawnAs(&pupil{}, a, 99)} {
			require.ErrorIs(t, err, ErrNotSpawned, "%d", i)
		}
		require.NoError(t, w.Destroy(a))
		a.MarkUnits(1)
		a.ForceUpdate()
		a.FlushDormancy()
		a.SetCullDistance(3)
		w.Stay(a)
		_, err := w.Depart(a, nil)
		require.ErrorIs(t, err, ErrNotSpawned)
		at, ok := a.ServerTime()
		require.Equal(t, []any{time.Duration(0), false}, []any{at, ok})
		require.Equal(t, []any{(*World)(nil), NoRole, Actor(nil), false, false, false}, []any{a.World(), a.Role(), a.Parent(), a.IsOwned(), a.TornOff(), a.Dormant()})
	}
	a.MarkDirty()
	require.Equal(t, "", a.ClassName())
	require.ErrorIs(t, a.SetCondition("Cond", true), ErrNotSpawned)
	for i, err := range []error{c.Spawn(a), c.SpawnAs(a, nil, 99), c.Destroy(a)} {
		require.ErrorIs(t, err, ErrClient, "%d", i)
	}
	require.ErrorIs(t, w.SpawnAs(a, nil, 0), ErrTaken)
	require.Zero(t, w.Len())

	p := w.newPeer()
	p.out = &lane{}
	w.addPeer(p)
	b := &pupil{}
	b.SetPriority(5)
	b.SetCullDistance(7)
	b.SetAlwaysRelevant(true)
	b.SetOnlyOwner(true)
	b.SetOwner(p)
	b.SetAutonomous(true)
	b.SetPhysics(true)
	require.NoError(t, w.Spawn(b))
	require.NoError(t, w.SpawnIn(b, a))
	require.ErrorIs(t, w.SpawnAs(&pupil{}, nil, b.guid), ErrTaken)
	require.Equal(t, []any{float32(5), 7., true, true, p, true, true, Authority}, []any{b.ActorPriority(), b.CullDistance(), b.AlwaysRelevant(), b.OnlyOwner(), b.Owner(), b.autonomous, b.physics, b.Role()})
	require.Equal(t, []any{float32(2), 3., false, false, p, false, false, b}, []any{a.ActorPriority(), a.CullDistance(), a.AlwaysRelevant(), a.OnlyOwner(), a.Owner(), a.autonomous, a.physics, a.Parent()})
	var children []Actor
	for child := range b.Children {
		children = append(children, child)
	}
	require.Equal(t, []Actor{a}, children)
	last := &pupil{}
	last.SetOwner(p)
	w.RemoveConn(p)
	require.Nil(t, b.Owner())
	require.NoError(t, w.Spawn(last))
	require.Nil(t, last.Owner(), "its connection was removed")
	require.Equal(t, []any{float32(2), 9.}, []any{last.ActorPriority(), last.CullDistance()})
	w.Consistent(t)
}

// TestWhereCallsRun is the table of who may call what, and who is said to have called.
func TestWhereCallsRun(t *testing.T) {
	var ran []string
	note := func(kind string) func(Call, *clerk, uint8) error {
		return func(c Call, _ *clerk, n uint8) error {
			ran = append(ran, fmt.Sprint(kind, n, c.World.server, c.Peer != nil && c.Peer.IsLocal()))
			return map[bool]error{true: ErrUnfit}[n == 7]
		}
	}
	few := func(_ Call, _ *clerk, n uint8) bool { return n < 9 }
	ask, say, all := ServerRPC(note("ask")).Validated(few), ClientRPC(note("say")), MulticastRPC(note("all"))
	mute, odd := ClientRPC[*clerk, uint8](nil), ServerRPC(note("odd"))
	w, c := NewServer(Config{}), NewClient(Config{})
	require.NoError(t, w.Register("clerk", (*clerk)(nil), RPCs{"Ask": ask, "Say": say, "All": all, "Mute": mute}))
	require.NoError(t, c.Register("clerk", (*clerk)(nil), RPCs{"Ask": ask, "Say": say, "All": all}))
	a, b := &clerk{}, &clerk{}
	require.NoError(t, w.Spawn(a))
	c.add(b, c.classes[0], 3)
	for i, call := range []struct {
		err, want error
		ran       string
	}{
		{ask.Call(a, 1), nil, "ask1 true true"},
		{ask.Call(a, 9), ErrInvalid, ""},
		{odd.Call(a, 1), ErrNoProcedure, ""},
		{say.Call(a, 1), ErrNoOwner, ""},
		{say.Call(b, 1), ErrAuthority, ""},
		{all.Call(b, 1), ErrAuthority, ""},
		{all.Call(a, 2), nil, "all2 true true"},
		{all.Call(a, 7), ErrUnfit, "all7 true true"},
	} {
		if call.want == nil {
			require.NoError(t, call.err, "%d", i)
		} else {
			require.ErrorIs(t, call.err, call.want, "%d", i)
		}
		if call.ran != "" {
			require.Equal(t, call.ran, ran[0], "%d", i)
			ran = ran[1:]
		}
	}
	require.Empty(t, ran)
	a.SetOwner(w.Local())
	require.NoError(t, say.Call(a, 3))
	require.ErrorIs(t, mute.Call(a, 3), ErrNoHandler)
	require.Equal(t, []string{"say3 true true"}, ran)
	require.True(t, a.IsOwned())
}

// primed sets what it has before its first values come.
type primed struct {
	Base
	Words [20]uint64 `net:""`
	N     int32      `net:""`
}

func (p *primed) Init() {
	for i := range p.Words {
		p.Words[i] = uint64(i + 1)
	}
	p.N = 9
}

// TestZerosOverInit: where the server has zero a client has zero, whatever Init sets, in a group of values too.
func TestZerosOverInit(t *testing.T) {
	s, c := NewServer(Config{}), NewClient(Config{})
	require.NoError(t, s.Register("primed", (*primed)(nil)))
	require.NoError(t, c.Register("primed", (*primed)(nil)))
	l := addLane(t, s, c)
	a := &primed{}
	a.Words[3] = 7
	require.NoError(t, s.Spawn(a))
	for now := range time.Duration(6) {
		s.Step(now)
		l.deliver()
	}
	got := c.Find(a.guid).(*primed)
	require.Equal(t, a.Words, got.Words)
	require.Zero(t, got.N)
}

// steps lets so many Steps pass, with the lane's time of flight.
func (p *pair) steps(n int) {
	for range n {
		p.now += time.Second / 30
		p.s.Step(p.now)
		p.l.deliver()
	}
}

// there is the client's copy of an actor.
func (p *pair) there(a *pupil) *pupil {
	c, _ := p.c.Find(a.guid).(*pupil)
	return c
}

// heir destroys the parent under which it comes.
type heir struct {
	Base
	N int32 `net:""`
}

func (h *heir) Init() { _ = h.World().Destroy(h.Parent()) }

// TestDestroyedWithinInit: an actor that comes behind the end of its parent, and whose Init destroys that one, is gone with it, and nothing is told of it.
func TestDestroyedWithinInit(t *testing.T) {
	var told []string
	s := NewServer(Config{})
	c := NewClient(Config{Spawned: func(a Actor) { told = append(told, "spawned "+a.base().ClassName()) }, Destroyed: func(a Actor) { told = append(told, "destroyed "+a.base().ClassName()) }})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil)))
		require.NoError(t, w.Register("heir", (*heir)(nil)))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	a, h := p.newPupil(t), &heir{N: 3}
	require.NoError(t, a.TearOff())
	p.steps(8)
	c.Step(p.now)
	require.True(t, p.there(a).TornOff())
	require.NoError(t, s.SpawnIn(a, h))
	p.l.peer.want(h.base()) // as when its opening had been lost
	p.steps(4)
	h.N++
	p.steps(4)
	c.Step(p.now)
	require.Equal(t, []string{"spawned pupil", "destroyed pupil"}, told)
	require.Zero(t, c.Len())
}

// TestSwitchedOnWithoutMarks: what a Manual class set while the field's condition was off is sent when it is switched on, without another MarkDirty.
func TestSwitchedOnWithoutMarks(t *testing.T) {
	p := newPair(t, Manual())
	a := &pupil{Cond: 1}
	require.NoError(t, p.s.Spawn(a))
	p.steps(8)
	require.NoError(t, a.SetCondition("Cond", false))
	p.steps(4)
	a.Cond = 5
	a.MarkDirty()
	p.steps(4)
	require.EqualValues(t, 1, p.there(a).Cond)
	require.NoError(t, a.SetCondition("Cond", true))
	p.steps(4)
	require.EqualValues(t, 5, p.there(a).Cond)
}

// TestOneChangeInItsStep: a change of an actor with SetUpdateEvery arrives in the next Step of the actor's, although nothing changes after it; with a smaller n
// it is sooner.
func TestOneChangeInItsStep(t *testing.T) {
	p := newPair(t)
	a, b := &pupil{}, &pupil{}
	require.NoError(t, p.s.Spawn(a))
	require.NoError(t, p.s.Spawn(b))
	p.steps(8)
	for range 20 {
		p.l.peer.SetUpdateEvery(a, 16)
		a.N++
		b.N++
		late := 0
		for p.steps(1); p.there(a).N != a.N; p.steps(1) {
			late++
			require.Less(t, late, 16+3)
		}
		require.Equal(t, b.N, p.there(b).N)
		p.l.peer.SetUpdateEvery(a, 64)
		p.steps(late % 5)
		a.N++
		p.steps(2)
		p.l.peer.SetUpdateEvery(a, 1)
		p.steps(4)
		require.Equal(t, a.N, p.there(a).N)
	}
}

// TestLossOfWhatCameAgain: of a lost record only those values are sent again that no later record has.
func TestLossOfWhatCameAgain(t *testing.T) {
	p := newPair(t)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	p.steps(8)
	before := p.s.Counters
	next := func(lost bool) { p.l.packet, p.l.drop, p.l.lost = p.l.packet+1, lost, lost } // what follows is in another packet
	a.N = 1
	next(true)
	p.steps(1)
	next(false)
	a.N = 2
	p.steps(8)
	require.EqualValues(t, 2, p.there(a).N)
	require.EqualValues(t, 1, p.s.Counters.Resent-before.Resent)
	require.EqualValues(t, 2, p.s.Counters.Updates-before.Updates)

	before = p.s.Counters
	a.N, a.Cond = 3, 1
	next(true)
	p.steps(1)
	next(false)
	a.N = 4
	p.steps(8)
	require.EqualValues(t, 4, p.there(a).N)
	require.EqualValues(t, 1, p.there(a).Cond)
	require.EqualValues(t, 3, p.s.Counters.Updates-before.Updates)
	require.Empty(t, p.l.peer.settling, "nobody sleeps")
}

// TestTornOffInItsSleep: a sleeper that is torn off without a change costs no channel; with one it is opened for its last values.
func TestTornOffInItsSleep(t *testing.T) {
	p := newPair(t)
	a, b := &pupil{}, &pupil{}
	for _, a := range []*pupil{a, b} {
		require.NoError(t, p.s.Spawn(a))
		require.NoError(t, a.SetDormant(true))
	}
	p.steps(10)
	require.EqualValues(t, 2, p.s.Counters.Opened)
	require.NoError(t, a.TearOff())
	p.steps(6)
	require.EqualValues(t, 2, p.s.Counters.Opened)
	require.True(t, p.there(a).TornOff())
	b.N = 7
	require.NoError(t, b.TearOff())
	p.steps(6)
	require.EqualValues(t, 3, p.s.Counters.Opened)
	require.True(t, p.there(b).TornOff())
	require.EqualValues(t, 7, p.there(b).N)
}

// TestZerosOfALargeOpening: an opening in several bunches has no values that are zero on both ends.
func TestZerosOfALargeOpening(t *testing.T) {
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("parcel", (*parcel)(nil)))
	}
	l := addLane(t, s, c)
	a := &parcel{Text: string(make([]byte, 6000)), More: string(make([]byte, 6000)), Rest: 3}
	require.NoError(t, s.Spawn(a))
	for now := range time.Duration(20) {
		s.Step(now * time.Second / 30)
		l.deliver()
	}
	v := l.peer.views[a.base()]
	require.Equal(t, open, v.state)
	sum := uint64(0)
	for _, cost := range l.peer.Attribution(0) {
		if cost.Class != "" && cost.Bits > 0 {
			require.Contains(t, []string{"Text", "More", "Rest"}, cost.Name)
		}
		sum += cost.Bits
	}
	require.Greater(t, sum, uint64(2*6000*8))
	got := c.Find(a.guid).(*parcel)
	require.Equal(t, []any{a.Text, a.More, a.Rest}, []any{got.Text, got.More, got.Rest})
}

// TestEndsWithinAStep: an actor that is destroyed behind a call disappears in the Step that runs the call, after it.
func TestEndsWithinAStep(t *testing.T) {
	p := newPair(t)
	a := &pupil{N: 1}
	require.NoError(t, p.s.Spawn(a))
	p.steps(8)
	p.serve(t)
	p.tell(t)
	require.NoError(t, poke.Call(a, 3))
	require.NoError(t, p.s.Destroy(a))
	p.serve(t)
	require.Equal(t, 1, p.c.Len(), "until its call has run")
	require.Equal(t, []string{"poked 3", "destroyed 1 true", "world: destroyed 1"}, p.tell(t))
	require.Zero(t, p.c.Len())
	require.Empty(t, p.tell(t))
}

// TestDestroyedWithinDestroyed: when a game that is told that an actor is gone destroys others, it is told of these too.
func TestDestroyedWithinDestroyed(t *testing.T) {
	p := newPair(t)
	all := p.newPupils(t, 4)
	p.serves(t, 8)
	for i, a := range all {
		a.N = int32(i)
		if i > 0 {
			require.NoError(t, a.TearOff())
		}
	}
	p.serves(t, 8)
	told := p.c.cfg.Destroyed
	p.c.cfg.Destroyed = func(a Actor) {
		told(a)
		if next := int(a.(*pupil).N) + 1; next < len(all) {
			require.NoError(t, p.c.Destroy(p.there(all[next])))
		}
	}
	p.tell(t)
	require.NoError(t, poke.Call(all[0], 3)) // it goes once the call has run
	require.NoError(t, p.s.Destroy(all[0]))
	p.serve(t)
	log := []string{"poked 3"}
	for i := range all {
		log = append(log, fmt.Sprint("destroyed ", i, " true"), fmt.Sprint("world: destroyed ", i))
	}
	require.Equal(t, log, p.tell(t))
	require.Zero(t, p.c.Len())
}

// TestTimeOfEachActor: an actor's ServerTime is that of its own newest values, the World's that of the newest of all.
func TestTimeOfEachActor(t *testing.T) {
	p := newPair(t)
	a, b := &pupil{}, &pupil{}
	require.NoError(t, p.s.Spawn(a))
	require.NoError(t, p.s.Spawn(b))
	p.steps(8)
	a.N, b.N = 1, 1
	set := p.now + time.Second/30
	p.steps(5)
	for range 10 {
		b.N++
		p.steps(1)
	}
	newest := p.now
	p.steps(4)
	of := func(f func() (time.Duration, bool)) time.Duration {
		at, ok := f()
		require.True(t, ok)
		return at
	}
	const unit = 66 * time.Microsecond
	require.InDelta(t, set, of(p.there(a).ServerTime), float64(unit))
	require.InDelta(t, newest, of(p.there(b).ServerTime), float64(unit))
	require.InDelta(t, newest, of(p.c.ServerTime), float64(unit))
	require.Equal(t, p.now, of(a.ServerTime))
	require.Equal(t, p.now, of(p.s.ServerTime))
}

// came and went each have one of Notified's methods.
type (
	came struct {
		Base
		n *int
	}
	went struct {
		Base
		n *int
	}
)

func (a *came) Spawned()   { *a.n++ }
func (a *went) Destroyed() { *a.n += 10 }

// TestOneOfNotified: an actor with Spawned or Destroyed alone is told too.
func TestOneOfNotified(t *testing.T) {
	n := 0
	w := NewClient(Config{})
	require.NoError(t, w.Register("came", (*came)(nil)))
	require.NoError(t, w.Register("went", (*went)(nil)))
	for _, a := range []Actor{&came{n: &n}, &went{n: &n}} {
		w.client.tell(&event{kind: eventSpawned, a: a})
		w.client.tell(&event{kind: eventDestroyed, a: a})
	}
	require.Equal(t, 11, n)
}

// TestComponentsEveryNthStep: SetUpdateEvery(a, n) has the components that an actor has by then sent in every n-th Step too.
func TestComponentsEveryNthStep(t *testing.T) {
	p := newPair(t)
	a, child := p.newPupil(t), &pupil{}
	require.NoError(t, p.s.SpawnIn(a, child))
	p.serves(t, 8)
	for _, n := range []int{6, 1, 3} {
		p.l.peer.SetUpdateEvery(a, n)
		require.Equal(t, n, p.l.peer.UpdateEvery(child))
		p.serves(t, 8)
		before := p.s.Counters.Updates
		for range 60 {
			child.N++
			p.serve(t)
		}
		require.EqualValues(t, 60/n, p.s.Counters.Updates-before, "every %d", n)
	}
}

// TestExplainOfNobodysActor: Explain of an actor without an owner names fields that nobody gets for that only where there are any.
func TestExplainOfNobodysActor(t *testing.T) {
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("place", (*place)(nil)))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	a := &place{}
	require.NoError(t, s.Spawn(a))
	for i := range 8 {
		s.Step(time.Duration(i) * time.Second / 30)
		p.l.deliver()
	}
	require.Nil(t, a.Owner())
	require.Equal(t, "up to date", s.Explain(p.l.peer, a).Text)
}

// executor runs everything on one core, and knows while it does.
type executor struct{ runs bool }

func (*executor) Workers() int { return 4 }
func (e *executor) Run(n int, f func(i, worker int)) {
	e.runs = true
	for i := range n {
		f(i, i%4)
	}
	e.runs = false
}

// TestRelevantIsCalledAlone: Config.Relevant, which is the game's, is never called on several cores at a time, however many pairs there are. What the world asks itself is.
func TestRelevantIsCalledAlone(t *testing.T) {
	for _, asks := range []bool{false, true} {
		cores, calls := &executor{}, 0
		cfg := Config{Parallel: cores}
		if asks {
			cfg.Relevant = func(*Peer, Actor) bool {
				require.False(t, cores.runs)
				calls++
				return true
			}
		}
		s, c := NewServer(cfg), NewClient(Config{})
		for _, w := range []*World{s, c} {
			require.NoError(t, w.Register("place", (*place)(nil)))
		}
		addLane(t, s, c)
		for range 2 * pairsForCores {
			require.NoError(t, s.Spawn(&place{}))
		}
		for i := range 5 {
			s.Step(time.Duration(i+1) * time.Second / 30)
		}
		require.Equal(t, asks, calls > 2*pairsForCores)
	}
}
