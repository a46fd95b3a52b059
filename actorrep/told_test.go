package actorrep

import (
	"fmt"
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

func (s *spy) note(what string, a Actor) {
	s.log = append(s.log, fmt.Sprint(what, " ", a.(*pupil).N))
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
		before := p.s.Counters.SharedBits
		p.serve(t)
		for range 3 {
			other.deliver()
		}
		if v, o := p.l.peer.views[a.base()], other.peer.views[a.base()]; i > 60 && v.base.older != o.base.older && p.s.Counters.SharedBits > before {
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

func (o *watcher) Opening(_ channel.Conn, id netguid.GUID, _ uint32, units layout.Mask) {
	o.log = append(o.log, fmt.Sprintf("opening %v %b", id, units))
}
func (o *watcher) Sent(_ channel.Conn, id netguid.GUID, _ int64, units layout.Mask, waited string) {
	o.log = append(o.log, fmt.Sprintf("sent %v %b %s", id, units, waited))
}
func (o *watcher) Unsaid(id netguid.GUID, _ string, _ *layout.Layout, units layout.Mask, sleeps bool) {
	if units != 0 {
		o.log = append(o.log, fmt.Sprintf("unsaid %v %b %v", id, units, sleeps))
	}
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
	p.s.Consistent(t)
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
	var all []*pupil
	for range 600 {
		a := &pupil{}
		require.NoError(t, p.s.Spawn(a))
		all = append(all, a)
	}
	for p.c.Len() < len(all) {
		p.serve(t)
	}
	for range 4 {
		p.serve(t)
	}
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
	require.NoError(t, b.SetDormant(true))
	for now := range time.Duration(4) {
		s.Step((5 + now) * time.Second)
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
