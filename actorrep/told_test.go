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
	c.Step(p.now)
	require.Equal(t, a.Line, c.Find(a.guid).(*pupil).Line)
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
	}
}
