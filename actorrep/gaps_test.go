package actorrep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestBadCallsAreCounted: what a client sends that isn't a call, or only the beginning of one, is an error and counted as bad.
func TestBadCallsAreCounted(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	v := p.l.peer.views[p.newPupil(t).base()]
	for i, kind := range []uint64{wire.Role, wire.Call} {
		w := bitio.NewWriter(make([]byte, 8))
		w.WriteBits(kind, wire.KindBits)
		require.ErrorIs(t, p.l.peer.receiveCalls(v, bitio.NewReader(w.Bytes(), w.Len()), nil), errFormat)
		require.EqualValues(t, i+1, p.s.Counters.Bad)
		require.Zero(t, p.s.Counters.CallsRefused)
	}
	w := bitio.NewWriter(make([]byte, 8))
	w.WriteBits(wire.Call, wire.KindBits)
	w.WriteIntPacked(9)
	w.WriteIntPacked(0)
	require.ErrorIs(t, p.l.peer.receiveCalls(v, bitio.NewReader(w.Bytes(), w.Len()), nil), errFormat, "there is no such procedure")
	require.EqualValues(t, 1, p.s.Counters.CallsRefused)
}

// TestReferencesThatAreOver: an actor that refers to one absent actor after the other, for hours, takes no place from references that still wait.
func TestReferencesThatAreOver(t *testing.T) {
	p := newPair(t)
	a, late := p.newPupils(t, 1)[0], &pupil{}
	p.l.peer.Hold(func(a Actor) bool { return a == Actor(late) })
	require.NoError(t, p.s.Spawn(late))
	for i := range netguid.GUID(maxUnmapped + 100) {
		a.Who = 2*i + 100000
		p.steps(1)
		p.c.Step(p.now)
	}
	a.Who = late.guid
	p.serves(t, 4)
	p.tell(t)
	p.l.peer.Release()
	p.serves(t, 4)
	require.Contains(t, p.tell(t), "who true")
}

// TestParentsThatALiarChanges: a component that a server opens again and again, each time with another parent that never comes, waits for the last one only.
func TestParentsThatALiarChanges(t *testing.T) {
	o := newHonest(t)
	for i := range uint32(3 * maxUnmapped) {
		o.openAs(wire.Opening{GUID: 4, Parent: 2*i + 100, Frame: i + 1}, 1, &smallActor{}).Closed(nil, bunch.Destroyed)
		if i%1000 == 0 {
			o.client.Step(time.Duration(i) * time.Second)
		}
		require.LessOrEqual(t, len(o.client.client.waits), maxUnmapped+1000)
	}
	o.openAs(wire.Opening{GUID: 4, Parent: 2, Frame: 3*maxUnmapped + 1}, 1, &smallActor{})
	o.openAs(wire.Opening{GUID: 2, Frame: 3*maxUnmapped + 2}, 2, &smallActor{})
	require.Same(t, o.client.Find(2), o.client.Find(4).(*smallActor).Parent())
	require.Empty(t, o.failed)
	o.client.Consistent(t)
}

// TestManyGoBetweenSteps: of actors that disappear a client keeps as many ids as references may wait, and then looks at the references.
func TestManyGoBetweenSteps(t *testing.T) {
	c := NewClient(Config{}).client
	c.referring = []*Base{{}}
	for i := range netguid.GUID(maxUnmapped) {
		require.EqualValues(t, i, len(c.missed))
		c.miss(2*i + 2)
	}
	require.Empty(t, c.missed)
	require.Empty(t, c.referring)
}

type hunter struct {
	Base
	Prey Ref[*pupil]                 `net:"notify=OnPrey"`
	Bag  fastarray.List[Ref[*pupil]] `net:""`

	told int
}

func (h *hunter) OnPrey() { h.told++ }

// TestReferenceThatLeftBefore: an actor's coming isn't told of a field that refers to it no more, though a list of the same actor does.
func TestReferenceThatLeftBefore(t *testing.T) {
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
		require.NoError(t, w.Register("hunter", (*hunter)(nil)))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	late, h := &pupil{}, &hunter{}
	p.l.peer.Hold(func(a Actor) bool { return a == Actor(late) })
	require.NoError(t, s.Spawn(late))
	require.NoError(t, s.Spawn(h))
	h.Prey = RefTo(late)
	p.steps(9)
	c.Step(p.now)
	mine, added := c.Find(h.guid).(*hunter), 0
	mine.Bag.OnChange = func(fastarray.ID, Ref[*pupil], Ref[*pupil]) { added++ }
	_, err := h.Bag.Add(RefTo(late))
	require.NoError(t, err)
	h.Prey = Ref[*pupil]{}
	p.steps(9)
	c.Step(p.now)
	require.Len(t, c.client.waiting[late.guid], 2)
	mine.told = 0
	p.l.peer.Release()
	p.steps(9)
	c.Step(p.now)
	require.NotNil(t, c.Find(late.guid))
	require.Equal(t, 1, added)
	require.Zero(t, mine.told)
}

// TestReferencesAboveTheBound: no more references wait than may, whichever fields they are of; components wait all the same.
func TestReferencesAboveTheBound(t *testing.T) {
	c := NewClient(Config{}).client
	for i := range netguid.GUID(maxUnmapped + 10) {
		c.wait(2*i+2, unmapped{1, 0})
	}
	require.Len(t, c.waits, maxUnmapped)
	require.True(t, c.crowded)
	c.wait(2, unmapped{3, -1})
	require.Len(t, c.waits, maxUnmapped+1)
}

// TestDepartOfNobodys: an actor without an owner at a client has no calls to go with it.
func TestDepartOfNobodys(t *testing.T) {
	s := NewServer(Config{IDs: netguid.Share{Servers: 2}})
	require.NoError(t, s.Register("place", (*place)(nil)))
	a := &place{}
	require.NoError(t, s.Spawn(a))
	for _, owner := range []*Peer{nil, s.Local()} {
		a.SetOwner(owner)
		state, err := s.Depart(a, []byte{7})
		require.NoError(t, err)
		require.Equal(t, []byte{7, 0, 0, 0, 0}, state)
	}
}

// TestLoopOverPeersEnds: a loop over the connections ends where the game leaves it. A server has no connection of its own.
func TestLoopOverPeersEnds(t *testing.T) {
	p := newPair(t)
	c := NewClient(Config{})
	require.NoError(t, c.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
	addLane(t, p.s, c)
	n := 0
	for range p.s.Peers {
		n++
	}
	require.Equal(t, 2, n)
	for range p.s.Peers {
		n++
		break
	}
	require.Equal(t, 3, n)
	require.Nil(t, p.s.Conn())
}

type deaf struct {
	Base
	N uint32 `net:"notify=OnNothing"`
}

// TestNotifyThatIsMissing: a class whose notify has no method is refused.
func TestNotifyThatIsMissing(t *testing.T) {
	require.ErrorIs(t, NewServer(Config{}).Register("deaf", (*deaf)(nil)), ErrNotify)
}

// TestCallsOfAFormerOwner: of calls for which there is no room when the owner changes, those to the owner are dropped, of which the game is told; multicasts run.
// A client without the class is nobody to call.
func TestCallsOfAFormerOwner(t *testing.T) {
	var failed []error
	whisper := ClientRPC(func(Call, *pupil, uint8) error { return nil }, Reliable)
	s, c := NewServer(Config{Failed: func(err error) { failed = append(failed, err) }}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Whisper": whisper, "Poke": poke}))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	p.serves(t, 4)
	a := p.newPupil(t)
	a.SetOwner(p.l.peer)
	p.serves(t, 5)
	p.tell(t)
	v := p.l.peer.views[a.base()]
	child := &pupil{}
	require.NoError(t, s.SpawnIn(a, child))
	p.serves(t, 5)
	p.tell(t)
	require.NoError(t, whisper.Call(a, 1))
	require.NoError(t, poke.Call(a, 2))
	require.NoError(t, whisper.Call(child, 3))
	p.l.flying[v], p.l.flying[p.l.peer.views[child.base()]] = laneRoom, laneRoom
	a.SetOwner(nil)
	require.Len(t, failed, 2)
	require.ErrorIs(t, failed[0], ErrOwnerGone)
	require.ErrorIs(t, failed[1], ErrOwnerGone, "a component's")
	require.Len(t, v.calls, 1)
	clear(p.l.flying)
	p.serves(t, 4)
	require.Equal(t, []string{"poked 2"}, p.tell(t))

	a.SetOwner(p.l.peer)
	p.l.peer.lacks = []bool{true}
	require.ErrorIs(t, whisper.Call(a, 3), ErrNoClass)
}

// TestReferringOfThoseGone: a client keeps no more of the actors that had references, and are gone, than of those that are there.
func TestReferringOfThoseGone(t *testing.T) {
	w := NewClient(Config{})
	c := w.client
	for range 5 {
		c.refer(&Base{world: w})
	}
	for range 10_000 {
		c.refer(&Base{})
		require.LessOrEqual(t, len(c.referring), 2*(5+leastReferring))
	}
}

// TestParentOfAnother: an actor whose parent comes after it is gone, and another one has its id, doesn't pass its parent on to that one.
func TestParentOfAnother(t *testing.T) {
	w := NewClient(Config{})
	require.NoError(t, w.Register("place", (*place)(nil)))
	base := func(id, parent netguid.GUID) *Base {
		a := &place{}
		w.add(a, w.classes[0], id)
		a.mirror = &mirror{world: w, b: a.base(), guid: id, parent: parent}
		return a.base()
	}
	for _, parent := range []netguid.GUID{0, 9, 5} { // of the one that has the id by then
		child := base(3, parent)
		w.client.wait(5, unmapped{3, -1})
		late := base(5, 0)
		w.client.arrived(late)
		if parent == 5 {
			require.Equal(t, late, child.parent)
		} else {
			require.Nil(t, child.parent)
		}
		w.actors, w.live = nil, 0
		clear(w.byGUID)
	}
}

// TestDroppedCallsAreTold: how many calls a client has dropped, as too many waited for Step, is told in the next Step, once, and counted.
func TestDroppedCallsAreTold(t *testing.T) {
	p := newPair(t)
	var told []error
	p.c.cfg.Failed = func(err error) { told = append(told, err) }
	a := p.newPupil(t)
	p.serves(t, 4)
	p.tell(t)
	p.c.client.pending = make([]pendingCall, maxPendingCalls)
	o := &watcher{}
	bridge.Observe.(func(*World, bridge.Observer))(p.c, o)
	before := p.c.Counters.CallsDropped
	for n := range uint8(3) {
		require.NoError(t, poke.Call(a, n))
	}
	p.s.Step(p.now + time.Second/30)
	for range 3 {
		p.l.deliver()
	}
	require.Equal(t, before+3, p.c.Counters.CallsDropped)
	require.Len(t, o.log, 3)
	require.Contains(t, o.log[0], "too many wait for Step")
	p.c.client.pending = nil
	for range 4 {
		p.c.Step(p.now)
	}
	require.Len(t, told, 1)
	require.ErrorIs(t, told[0], ErrCallsPending)
	require.ErrorContains(t, told[0], "3 were")
}

// TestPlayedSleeperElsewhere: a file whose sleeping actor is at no place, or at that of another one, is refused, and changes nothing.
func TestPlayedSleeperElsewhere(t *testing.T) {
	p := newPair(t)
	p.newPupil(t)
	p.serves(t, 4)
	there := 0
	for place, m := range p.c.client.mirrors {
		if m != nil {
			require.Error(t, p.l.to.Message(bridge.Sleeper, uint32(place), bitio.NewReader(nil, 0)))
			require.False(t, m.asleep)
			there++
		}
	}
	require.Equal(t, 1, there)
	require.Error(t, p.l.to.Message(bridge.Sleeper, 0, bitio.NewReader(nil, 0)))
	require.Error(t, p.l.to.Message(bridge.Sleeper, 1<<20, bitio.NewReader(nil, 0)))
}

// TestSetIsObserved: an observer at a client hears which values came.
func TestSetIsObserved(t *testing.T) {
	p := newPair(t)
	a := p.newPupil(t)
	p.serves(t, 4)
	o := &watcher{}
	bridge.Observe.(func(*World, bridge.Observer))(p.c, o)
	p.serve(t)
	o.log = nil
	a.N++
	p.serve(t)
	require.Contains(t, o.log, "set "+a.guid.String()+" 1")
}
