package actorrep

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// serves lets several Steps pass.
func (p *pair) serves(t *testing.T, n int) {
	for range n {
		p.serve(t)
	}
}

// newPupil is a pupil whom the client has.
func (p *pair) newPupil(t *testing.T) *pupil {
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	p.serves(t, 5)
	require.NotNil(t, p.c.Find(a.guid))
	return a
}

// newPupils are pupils whom the client has.
func (p *pair) newPupils(t *testing.T, n int) (all []*pupil) {
	for range n {
		a := &pupil{}
		require.NoError(t, p.s.Spawn(a))
		all = append(all, a)
	}
	for p.c.Len() < n {
		p.serve(t)
	}
	return all
}

// TestCalledInItsSleep: a call that came before its actor slept and woke again, between two Steps of the client, runs on it.
func TestCalledInItsSleep(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	p.tell(t)
	require.NoError(t, poke.Call(a, 1))
	p.serves(t, 2)
	require.NoError(t, a.SetDormant(true))
	p.serves(t, 5)
	require.Equal(t, ReasonDormant, p.s.Explain(p.l.peer, a).Reason)
	a.N = 5
	a.FlushDormancy()
	p.serves(t, 5)
	require.Equal(t, []string{"N 0 5", "poked 1"}, p.tell(t))
	require.Zero(t, p.c.Counters.CallsDropped)
}

// TestFrameOfACall: the frame of a call, at a client, is that of the server's Step that sends it.
func TestFrameOfACall(t *testing.T) {
	var got, made []uint32
	all := MulticastRPC(func(c Call, _ *pupil, _ uint8) error {
		if !c.World.IsServer() {
			got = append(got, c.Frame)
		}
		return nil
	}, Reliable)
	one := ClientRPC(func(c Call, _ *pupil, _ uint8) error { got = append(got, c.Frame); return nil }, Reliable)
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"All": all, "One": one}))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	p.serves(t, 4)
	a := p.newPupil(t)
	a.SetOwner(p.l.peer)
	p.serves(t, 5)
	for i := range uint8(20) {
		if i%2 == 0 {
			require.NoError(t, all.Call(a, i))
		} else {
			require.NoError(t, one.Call(a, i))
		}
		p.serve(t)
		made = append(made, s.Frame())
		p.tell(t)
	}
	p.serves(t, 3)
	p.tell(t)
	require.Equal(t, made, got)
}

// TestServersProceduresAtAClient: a server that calls one of its own procedures at a client is refused, and nothing runs.
func TestServersProceduresAtAClient(t *testing.T) {
	o := newHonest(t)
	m := o.open(1, 2, false, &largeActor{})
	require.Empty(t, o.failed)
	w := bitio.NewWriter(make([]byte, 100))
	w.WriteBits(wire.Call, wire.KindBits)
	w.WriteUint32(1)
	w.WriteIntPacked(0) // Ask
	params := bitio.NewWriter(make([]byte, 20))
	o.world.classes[2].rpcs[0].definition().params.WriteValue(params, unsafe.Pointer(&struct {
		A []string
		B uint8
	}{B: 3}))
	w.WriteIntPacked(uint32(params.Len()))
	w.WriteBitsFrom(params.Bytes(), 0, params.Len())
	m.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), true))
	require.Len(t, o.failed, 1)
	require.ErrorIs(t, o.failed[0], errFormat)
	require.ErrorContains(t, o.failed[0], "is for servers")
	require.Empty(t, o.client.client.pending)
}

// TestManySmallClasses: as many classes as their descriptions' bound allows are described in a few messages and known at the client.
func TestManySmallClasses(t *testing.T) {
	s, c := NewServer(Config{}), NewClient(Config{})
	require.NoError(t, s.Register("place", (*place)(nil)))
	require.NoError(t, c.Register("place", (*place)(nil)))
	for i := range 1500 {
		k := *s.classes[0]
		k.name = fmt.Sprint("place", i)
		require.NoError(t, s.describe(&k))
		s.classes = append(s.classes, &k)
	}
	data, bits := s.encodeSchema()
	var h schemaReader
	r := bitio.NewReader(data, bits)
	r.ReadBits(wire.KindBits)
	done, err := h.read(c, r)
	require.NoError(t, err)
	require.True(t, done)
	require.Len(t, h.list, 1501)
	require.NotNil(t, h.list[0].local)
	require.Nil(t, h.list[1].local)
}

// TestAdoptedByName: a call that another World takes over is of the procedure of its name; one that the other server has not, or the client, is told to be lost.
func TestAdoptedByName(t *testing.T) {
	var failed []error
	w := NewClient(Config{Failed: func(err error) { failed = append(failed, err) }})
	require.NoError(t, w.Register("place", (*place)(nil)))
	a := &place{}
	w.add(a, w.classes[0], 2)
	from := &mirror{class: &remoteClass{rpcs: []remoteRPC{{name: "B"}, {name: "C"}, {name: "D"}}}}
	m := &mirror{world: w, self: a.base(), class: &remoteClass{rpcs: []remoteRPC{{name: "A", local: 1}, {name: "B", local: 0}, {name: "C", local: -1}}}}
	for i, want := range []int{1, -1, -1} {
		k := &call{name: from.class.rpcs[i].name, data: []byte{1, 2, 3}, bits: 20}
		k.rpc = i
		got := m.adopt(from, k)
		if want < 0 {
			require.Empty(t, got)
			require.Len(t, failed, i)
			require.ErrorIs(t, failed[i-1], ErrNoProcedure)
			continue
		}
		require.Len(t, got, 1)
		require.Equal(t, want, got[0].rpc)
		require.Equal(t, k.data, got[0].data)
		require.Equal(t, k.bits, got[0].bits)
		require.Empty(t, failed)
	}
	require.EqualValues(t, 2, w.Counters.CallsDropped)
}

// TestWhatCameIsObserved: an observer at a server hears of each call of a client, and why one doesn't run.
func TestWhatCameIsObserved(t *testing.T) {
	own := ServerRPC(func(Call, *pupil, uint8) error { return nil }, Reliable, RateLimit(1, 2))
	any := ServerRPC(func(Call, *pupil, uint8) error { return nil }, AnyClient)
	o := &watcher{}
	w := NewServer(Config{})
	bridge.Observe.(func(*World, bridge.Observer))(w, o)
	require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Own": own, "Any": any}))
	p := w.newPeer()
	p.out = noOutlet{}
	w.addPeer(p)
	a := &pupil{}
	require.NoError(t, w.Spawn(a))
	v := newView(p, a.base())
	took := func(id int) (said string) {
		params := bitio.NewWriter(make([]byte, 8))
		n := uint8(3)
		w.classes[0].rpcs[id].definition().params.WriteValue(params, unsafe.Pointer(&n))
		require.NoError(t, p.receiveCall(v, id, bitio.NewReader(params.Bytes(), params.Len())))
		require.Len(t, o.log, 1)
		said, o.log = o.log[0], nil
		return said
	}
	const any0, own0 = 0, 1
	require.Contains(t, took(own0), "pupil.Own packet 0 true true the player doesn't own")
	require.Contains(t, took(any0), "pupil.Any packet 0 false true ")
	a.SetOwner(p)
	o.log = nil
	for range 2 {
		require.Regexp(t, "pupil.Own packet 0 true true $", took(own0))
	}
	require.Contains(t, took(own0), "too many of them")
	a.SetOwner(nil)
	o.log = nil
	v.state = ended
	require.Contains(t, took(any0), "the player doesn't have the actor any more")
	require.Equal(t, uint64(4), w.Counters.CallsReceived-2)
	require.Equal(t, uint64(3), w.Counters.CallsRefused)
	other := bitio.NewWriter(make([]byte, 16))
	other.WriteBits(wire.Role, wire.KindBits)
	other.WriteIntPacked(any0)
	other.WriteIntPacked(8)
	other.WriteBits(3, 8)
	require.ErrorIs(t, p.receiveCalls(v, bitio.NewReader(other.Bytes(), other.Len()), nil), errFormat, "another message isn't taken for a call")
	require.Empty(t, o.log)
}

// TestWhereReferencesGo: Explain says of a field whether the actor that it refers to is at the client, and nothing of one that refers to none.
func TestWhereReferencesGo(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a, b := p.newPupil(t), p.newPupil(t)
	why := func() Reason { return p.s.Explain(p.l.peer, a, "Who").Reason }
	require.Equal(t, ReasonUpToDate, why())
	a.Who = b.guid
	p.serves(t, 5)
	require.Equal(t, ReasonUpToDate, why(), "the client has it")
	hidden := &pupil{}
	p.l.full = true
	require.NoError(t, p.s.Spawn(hidden))
	a.Who = hidden.guid
	p.serves(t, 5)
	require.Equal(t, ReasonUnmapped, why(), "it waits to be opened")
	p.l.full = false
	p.serves(t, 5)
	require.Equal(t, ReasonUpToDate, why())
	require.NoError(t, hidden.SetDormant(true))
	p.serves(t, 5)
	require.Equal(t, ReasonUpToDate, why(), "it sleeps there")
	require.NoError(t, p.s.Destroy(hidden))
	p.serves(t, 5)
	require.Equal(t, ReasonUnmapped, why(), "it is gone")
}

// TestUrgentFirst: of more actors than there is bandwidth for the most urgent is opened first, however late it was spawned.
func TestUrgentFirst(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	p.l.scarce = true // 2000 bits
	for range 40 {
		require.NoError(t, p.s.Spawn(&pupil{}))
	}
	urgent := &pupil{}
	require.NoError(t, p.s.Spawn(urgent))
	urgent.SetPriority(100)
	p.serve(t)
	require.True(t, p.l.peer.Has(urgent))
	require.Less(t, p.l.peer.Len(), 30)
	p.serves(t, 10)
	require.Equal(t, 41, p.c.Len())
}

// TestHeldIsNotDelayed: actors that wait for Release don't count as delayed by a lack of room.
func TestHeldIsNotDelayed(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	p.l.peer.Hold(func(a Actor) bool { return a.(*pupil).Cond == 1 })
	for i := range uint8(10) {
		require.NoError(t, p.s.Spawn(&pupil{Cond: i % 2}))
	}
	p.serves(t, 5)
	require.Equal(t, 5, p.c.Len())
	require.Zero(t, p.s.Counters.Delayed)
	p.l.peer.Release()
	p.serves(t, 5)
	require.Equal(t, 10, p.c.Len())
	require.Zero(t, p.s.Counters.Delayed)
}

// TestOutlives: an actor of a connection that has ended, which the game removes only later, may be destroyed; it waits for no room.
func TestOutlives(t *testing.T) {
	s := NewServer(Config{})
	require.NoError(t, s.Register("place", (*place)(nil)))
	p := s.newPeer()
	p.ready = true
	s.addPeer(p)
	o := &channelOutlet{peer: p}
	p.out = o
	a := &place{}
	require.NoError(t, s.Spawn(a))
	p.want(a.base())
	p.views[a.base()].state = open // its channel ended with the connection
	require.NoError(t, s.Destroy(a))
	require.Zero(t, s.Counters.Delayed)
	require.Empty(t, p.gone)
	require.EqualValues(t, 1, s.Counters.Closed)
}

// wrapped is an outlet with some of its methods replaced.
type wrapped struct {
	outlet
	noClose   bool
	noCloseOf *Base
	wrote     func()
	failed    *error // may be nil
}

func (w *wrapped) fail(err error) {
	if w.failed == nil {
		w.outlet.fail(err)
		return
	}
	*w.failed = err
}

func (w *wrapped) close(v *view, r channel.CloseReason) bool {
	return !w.noClose && v.b != w.noCloseOf && w.outlet.close(v, r)
}
func (w *wrapped) end() {
	if w.wrote != nil {
		w.wrote()
	}
	w.outlet.end()
}

// TestTurnsOfConnections: each connection is the first to be written to as often as every other.
func TestTurnsOfConnections(t *testing.T) {
	s := NewServer(Config{})
	require.NoError(t, s.Register("place", (*place)(nil)))
	first, wrote := map[int]int{}, 0
	for i := range 3 {
		c := NewClient(Config{})
		require.NoError(t, c.Register("place", (*place)(nil)))
		p := addLane(t, s, c).peer
		p.ready = true
		p.out = &wrapped{outlet: p.out, wrote: func() {
			if wrote++; wrote%3 == 1 {
				first[i]++
			}
		}}
	}
	for i := range time.Duration(30) {
		s.Step(i * time.Second / 30)
	}
	require.Equal(t, 90, wrote)
	require.Equal(t, map[int]int{0: 10, 1: 10, 2: 10}, first)
}

// TestNoRoomToClose: an actor that is to leave for relevancy while there is no room for its close stays, and is told nothing of, until there is; one that is destroyed goes at
// once, and its client is told when there is room.
func TestNoRoomToClose(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a, b := p.newPupil(t), p.newPupil(t)
	out := &wrapped{outlet: p.l, noClose: true}
	p.l.peer.out = out
	p.s.cfg.Relevant = func(_ *Peer, x Actor) bool { return x != Actor(a) }
	p.serves(t, 5)
	require.False(t, p.l.peer.IsRelevant(a))
	require.True(t, p.l.peer.Has(a))
	require.Empty(t, p.l.peer.gone)
	require.Greater(t, p.s.Counters.Delayed, uint64(3))
	require.NotNil(t, p.c.Find(a.guid))
	require.NoError(t, p.s.Destroy(b))
	require.False(t, p.l.peer.Has(b))
	out.noClose = false
	p.serves(t, 5)
	require.False(t, p.l.peer.Has(a))
	require.Nil(t, p.c.Find(a.guid))
	require.Nil(t, p.c.Find(b.guid))
	require.EqualValues(t, 2, p.s.Counters.Closed)
}

// TestFarewellsAreBounded: a client that takes nothing of actors that are gone is ended, before what waits for it takes much memory.
func TestFarewellsAreBounded(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a, b := p.newPupil(t), p.newPupil(t)
	p.serves(t, 4)
	var failed error
	p.l.peer.out = &wrapped{outlet: p.l, noClose: true, failed: &failed}
	p.l.peer.gone = make([]farewell, maxFarewells-1)
	require.NoError(t, p.s.Destroy(a))
	require.NoError(t, failed)
	require.NoError(t, p.s.Destroy(b))
	require.ErrorIs(t, failed, errFarewells)
	require.Len(t, p.l.peer.gone, maxFarewells)
}

// TestTornOffWithCalls: calls that wait when their actor is torn off, and have no room, are told to be lost, each.
func TestTornOffWithCalls(t *testing.T) {
	p := newPair(t)
	var failed []error
	p.s.cfg.Failed = func(err error) { failed = append(failed, err) }
	p.serves(t, 4)
	p.l.full = true
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	p.serve(t)
	for n := range uint8(3) {
		require.NoError(t, poke.Call(a, n))
	}
	require.NoError(t, a.TearOff())
	require.Len(t, failed, 3)
	for _, err := range failed {
		require.ErrorIs(t, err, ErrActorGone)
		var e *ActorError
		require.ErrorAs(t, err, &e)
		require.Equal(t, "Poke", e.Name)
		require.Equal(t, p.l.peer, e.Peer)
	}
	require.EqualValues(t, 3, p.s.Counters.CallsDropped)
	p.s.Consistent(t)
}

// TestNewestOfAnArray: a fast array that was sent reliably and arrives after newer changes of it doesn't have these sent again.
func TestNewestOfAnArray(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	v := p.l.peer.views[a.base()]
	fasts := v.b.class.layout.Fasts
	for _, c := range []struct{ has, arrives, want uint32 }{{0, 5, 5}, {10, 5, 10}, {5, 10, 10}, {1<<32 - 3, 2, 2}, {2, 1<<32 - 3, 2}, {7, 7, 7}} {
		s := v.versions
		s.keys[0], s.later[0], s.promised = c.has, c.arrives, fasts
		v.keep()
		require.Equal(t, c.want, s.keys[0], "%+v", c)
		require.Zero(t, s.promised)
		s.keys[0], s.later[0] = c.has, c.arrives
		v.keep()
		require.Equal(t, c.has, s.keys[0], "nothing was promised")
	}
}

// TestToldAgainOfIrrelevance: a Relevancy that says in every Step that an actor isn't relevant doesn't keep it.
func TestToldAgainOfIrrelevance(t *testing.T) {
	p := newPair(t)
	p.s.cfg.RelevantTimeout = time.Second
	p.serves(t, 4)
	a := p.newPupil(t)
	p.s.cfg.Relevant = func(*Peer, Actor) bool { return false }
	for i := range 40 {
		p.l.peer.SetRelevant(a, false)
		p.serve(t)
		if i < 25 {
			require.NotNil(t, p.c.Find(a.guid))
		}
	}
	require.Nil(t, p.c.Find(a.guid))
	p.s.Consistent(t)
}

// TestNewOwnerSeesAtOnce: in a world of many actors and connections, where not every pair is looked at in a Step, the new owner of an actor has it from the next one on.
func TestNewOwnerSeesAtOnce(t *testing.T) {
	s := NewServer(Config{})
	require.NoError(t, s.Register("place", (*place)(nil), OnlyRelevantToOwner()))
	var peers []*Peer
	for range 20 {
		c := NewClient(Config{})
		require.NoError(t, c.Register("place", (*place)(nil)))
		peers = append(peers, addLane(t, s, c).peer)
	}
	var all []*place
	for range 1000 {
		a := &place{}
		require.NoError(t, s.Spawn(a))
		all = append(all, a)
	}
	now := time.Duration(0)
	step := func() {
		now += time.Second / 60
		s.Step(now)
	}
	step()
	step()
	for i, a := range all[300:320] {
		a.SetOwner(peers[i])
	}
	step()
	for i, a := range all[300:320] {
		require.True(t, peers[i].IsRelevant(a), "%d", i)
		require.False(t, peers[(i+1)%20].IsRelevant(a))
	}
}

// TestFatesOnCores: with several cores a Step learns what has become of all packets, however many were told; the others are woken up for many only.
func TestFatesOnCores(t *testing.T) {
	c := &crew{}
	s := NewServer(Config{Parallel: c})
	require.NoError(t, s.Register("place", (*place)(nil)))
	var peers []*Peer
	for range 3 {
		peers = append(peers, addLane(t, s, NewClient(Config{})).peer)
	}
	for _, n := range []int{1, fewForCores - 1, fewForCores, 3 * fewForCores} {
		for i := range n {
			peers[i%3].hear(int64(i), i%2 == 0)
		}
		require.Equal(t, n, s.fates)
		before := c.runs
		s.Step(time.Second)
		require.Equal(t, n >= fewForCores, c.runs > before, "%d", n)
		for _, p := range peers {
			require.Empty(t, p.fates, "%d", n)
		}
	}
}

// TestFullRecording: a recording with as many actors as it may have fails with the next, and not before.
func TestFullRecording(t *testing.T) {
	s := NewServer(Config{})
	require.NoError(t, s.Register("place", (*place)(nil)))
	tape := &fullTape{}
	r := newRecording(s, tape, nil, false).(*recording)
	r.slots = make([]slot, bridge.MaxPlaces-1)
	for i, ok := range []bool{true, false, false} {
		a := &place{}
		require.NoError(t, s.Spawn(a))
		v := newView(r.peer, a.base())
		require.Equal(t, ok, r.place(v), "%d", i)
		require.Equal(t, ok, tape.err == nil)
	}
	require.ErrorIs(t, tape.err, errManyRecorded)
	require.Len(t, r.slots, bridge.MaxPlaces)
}

// fullTape notes why it has failed.
type fullTape struct {
	bridge.Tape
	err error
}

func (f *fullTape) Fail(err error) { f.err = err }

// TestAnotherUnderItsName: a call whose actor has gone, with another of another class under its id, before the client's Step runs on neither.
func TestAnotherUnderItsName(t *testing.T) {
	o := newHonest(t)
	m := o.openAs(wire.Opening{GUID: 2, Class: 2, Frame: 1}, 1, &largeActor{})
	w := bitio.NewWriter(make([]byte, 100))
	w.WriteBits(wire.Call, wire.KindBits)
	w.WriteUint32(1)
	w.WriteIntPacked(1) // Tell
	params := bitio.NewWriter(make([]byte, 20))
	o.world.classes[2].rpcs[1].definition().params.WriteValue(params, unsafe.Pointer(&struct{ A string }{"x"}))
	w.WriteIntPacked(uint32(params.Len()))
	w.WriteBitsFrom(params.Bytes(), 0, params.Len())
	m.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), true))
	require.Len(t, o.client.client.pending, 1)
	o.openAs(wire.Opening{GUID: 2, Class: 0, Frame: 2}, 2, &smallActor{N: 5})
	require.Empty(t, o.failed)
	o.client.Step(time.Second)
	require.EqualValues(t, 1, o.client.Counters.CallsDropped)
	require.EqualValues(t, 5, o.client.Find(2).(*smallActor).N)
	require.Empty(t, o.failed)
	o.client.Consistent(t)
}

// TestWhatARecordMayBuildOn: a record builds on the last one that was acked, as long as the client has that and its age can be said.
func TestWhatARecordMayBuildOn(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	for i := range 12 {
		a.Line = [2]float64{float64(i), float64(-i)}
		p.serve(t)
	}
	p.serves(t, 3)
	v := p.l.peer.views[a.base()]
	line, n := a.class.layout.FieldMask("Line"), a.class.layout.FieldMask("N")
	kept := *v
	v.acked = v.number
	frame := v.base.frame
	for age, want := range map[uint32]bool{0: false, 1: true, layout.MaxAge: true, layout.MaxAge + 1: false, 1 << 31: false, 1<<32 - 1: false} {
		require.Equal(t, want, v.basis(frame+age, line) != basis{}, "age %d", age)
		require.Equal(t, basis{}, v.basis(frame+age, n), "a field without deltas")
	}
	require.Equal(t, line, v.basis(frame+1, line|n).known)
	for unacked, want := range map[uint16]bool{0: true, maxReach - 1: true, maxReach: false, 1 << 15: false} {
		v.number = v.acked + unacked
		require.Equal(t, want, v.basis(frame+1, line) != basis{}, "%d records after it", unacked)
	}
	v.number = v.acked
	v.base.count -= snapshotRing
	require.Equal(t, basis{}, v.basis(frame+1, line), "its numbers aren't kept")
	v.base = noBaseline
	require.Equal(t, basis{}, v.basis(frame+1, line), "none was acked")
	*v = kept
	p.s.Consistent(t)
}

// TestComponentsLeaveFirst: an actor stays while there is no room for the close of one of its components.
func TestComponentsLeaveFirst(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a, child := p.newPupil(t), &pupil{}
	require.NoError(t, p.s.SpawnIn(a, child))
	p.serves(t, 5)
	out := &wrapped{outlet: p.l, noCloseOf: child.base()}
	p.l.peer.out = out
	p.s.cfg.Relevant = func(*Peer, Actor) bool { return false }
	p.serves(t, 6)
	require.True(t, p.l.peer.Has(a))
	require.True(t, p.l.peer.Has(child))
	require.Equal(t, 2, p.c.Len())
	out.noCloseOf = nil
	p.serves(t, 6)
	require.False(t, p.l.peer.Has(a))
	require.False(t, p.l.peer.Has(child))
	require.Zero(t, p.c.Len())
	p.s.Consistent(t)
}

// TestCopyOfWhatIsSwitchedOff: a value that changes and is switched off between two frames of a recording is in a copy as it was then, also for who has watched before; what is set
// while it is off isn't in either.
func TestCopyOfWhatIsSwitchedOff(t *testing.T) {
	for _, sleeps := range []bool{false, true} {
		s := NewServer(Config{})
		require.NoError(t, s.Register("pupil", (*pupil)(nil)))
		viewer := func() (*World, bridge.Player) {
			w := NewClient(Config{Failed: func(err error) { t.Error(err) }})
			require.NoError(t, w.Register("pupil", (*pupil)(nil)))
			to := newPlayer(w)
			data, n := s.encodeSchema()
			_, err := to.Describe(bitio.NewReader(data, n))
			require.NoError(t, err)
			return w, to
		}
		first, to := viewer()
		tape := &strip{t: t, s: s, to: to, copied: map[uint32]bridge.Kind{}}
		r := newRecording(s, tape, nil, false).(*recording)
		now := time.Duration(0)
		step := func(frame bool) {
			now += 33 * time.Millisecond
			tape.still = !frame
			s.Step(now)
		}
		a := &pupil{Cond: 3}
		require.NoError(t, s.Spawn(a))
		for range 4 {
			step(true)
		}
		if sleeps {
			require.NoError(t, a.SetDormant(true))
			step(true)
			step(true)
			require.Equal(t, asleep, r.slots[1].v.state)
		}
		a.Cond = 5
		a.FlushDormancy()
		step(false)
		require.NoError(t, a.SetCondition("Cond", false))
		a.Cond = 9
		require.EqualValues(t, 3, first.Find(a.guid).(*pupil).Cond)
		second, copies := viewer()
		tape.copies = copies
		copied, ok := r.Copy(1)
		require.True(t, copied && ok)
		for _, w := range []*World{first, second} {
			require.EqualValues(t, 5, w.Find(a.guid).(*pupil).Cond, "sleeps %v", sleeps)
		}
		tape.copies = nil
		for range 3 {
			step(true)
		}
		require.EqualValues(t, 5, first.Find(a.guid).(*pupil).Cond)
		require.NoError(t, a.SetCondition("Cond", true))
		a.FlushDormancy()
		for range 3 {
			step(true)
		}
		require.EqualValues(t, 9, first.Find(a.guid).(*pupil).Cond)
		s.Consistent(t)
	}
}

// choir has a fast array and a group.
type choir struct {
	Base
	List fastarray.List[uint8] `net:""`
	Each [30]uint16            `net:""`
}

// TestKnownNeverFallsBack: what a client is known to have of a fast array or a group doesn't become older when a reliable message with an older version is acked after a
// record with a newer one.
func TestKnownNeverFallsBack(t *testing.T) {
	w := NewServer(Config{})
	require.NoError(t, w.Register("choir", (*choir)(nil)))
	a := &choir{}
	require.NoError(t, w.Spawn(a))
	l := a.class.layout
	for _, c := range []struct {
		key, later, wantKey uint32
		known, sent, want   int64
	}{{5, 9, 9, 5, 9, 9}, {9, 5, 9, 9, 5, 9}, {0, 5, 5, 0, 5, 5}, {1<<32 - 2, 3, 3, 7, 7, 7}, {3, 1<<32 - 2, 3, 0, 1, 1}} {
		s := newVersions(l)
		s.promised = l.Fasts | l.Groups
		s.keys[0], s.later[0], s.known[0], s.sent[0] = c.key, c.later, c.known, c.sent
		(&view{b: a.base(), versions: s}).keep()
		require.Equal(t, c.wantKey, s.keys[0])
		require.Equal(t, c.want, s.known[0])
		require.Zero(t, s.promised)
	}
}

// TestSleepEndsTheCount: the reliable calls that a client is to have had before its actor goes to another server are counted anew on the channel that opens when
// the actor wakes.
func TestSleepEndsTheCount(t *testing.T) {
	p := newPair(t)
	p.s.cfg.IDs.Servers = 2
	p.serves(t, 4)
	a := p.newPupil(t)
	for range 3 {
		require.NoError(t, poke.Call(a, 1))
		require.NoError(t, poke.Call(a, 2))
		p.serves(t, 4)
		require.EqualValues(t, 2, p.l.peer.views[a.base()].carry.sent)
		require.NoError(t, a.SetDormant(true))
		p.serves(t, 5)
		require.Equal(t, ReasonDormant, p.s.Explain(p.l.peer, a).Reason)
		require.NoError(t, a.SetDormant(false))
		p.serves(t, 5)
	}
}

// TestHolesGoAlong: the place of a call that a former server kept for itself goes on to the next one, without a name, when its actor departs again before the client has had it.
func TestHolesGoAlong(t *testing.T) {
	for _, except := range [][]Procedure{nil, {poke}} {
		p := newPair(t)
		p.s.cfg.IDs.Servers = 2
		p.serves(t, 4)
		a := p.newPupil(t)
		a.SetOwner(p.l.peer)
		p.serves(t, 4)
		k := p.s.unheld.take()
		k.rpc, k.name, k.def, k.given = holeCall, "hole", reservedCall, true
		v := p.l.peer.views[a.base()]
		v.calls = append(v.calls, k)
		data, err := p.s.Depart(a, nil, except...)
		require.NoError(t, err)
		require.Equal(t, []byte{1, 0}, data[len(data)-2:], "one call, of a name of no bytes")
	}
}
