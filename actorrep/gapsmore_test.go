package actorrep

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// TestTornOffBeforeTheEnd: an actor that is torn off stays with the client also when the connection ends before the close of its channel has come.
func TestTornOffBeforeTheEnd(t *testing.T) {
	o := newHonest(t)
	m := o.open(1, 0, false, &smallActor{N: 5})
	w := bitio.NewWriter(make([]byte, 8))
	w.WriteBits(wire.TornOff, wire.KindBits)
	m.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), true))
	a := o.client.Find(2).(*smallActor)
	require.True(t, a.TornOff())
	require.Equal(t, Authority, a.Role())
	m.Closed(nil, bunch.Destroyed)
	o.client.Step(time.Second)
	require.Same(t, a, o.client.Find(2))
	require.Empty(t, o.failed)
}

// TestRecordsOfAnotherConnection: records name no actors of the connection before.
func TestRecordsOfAnotherConnection(t *testing.T) {
	o := newHonest(t)
	o.open(1, 0, false, &smallActor{N: 5})
	record := func() {
		w := bitio.NewWriter(make([]byte, 99))
		wire.WriteTime(w, 2, time.Second, false)
		gap := wire.NewChunk().Gap
		wire.WriteID(w, 1, &gap, false)
		w.WriteBool(false) // no calls
		o.h.ReceivedBunch(nil, bunchOf(w.Bytes(), w.Len(), false))
	}
	o.h.Closed(nil, bunch.Destroyed)
	schema, n := o.world.encodeSchema()
	o.h = &replicationHandler{client: o.client.client}
	o.h.ReceivedBunch(nil, bunchOf(schema, n, true))
	require.Empty(t, o.failed)
	record()
	require.Len(t, o.failed, 1)
	require.ErrorIs(t, o.failed[0], ErrGUID)
}

// TestCutRecordNamesItsClass: of a record that ends too early the game is told whose it was.
func TestCutRecordNamesItsClass(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	a.N, a.Who = 1_000_000, 1_000_000
	p.now += time.Second / 30
	p.s.Step(p.now)
	require.Len(t, p.l.mail, 1)
	m := p.l.mail[0]
	require.Equal(t, bridge.Records, m.kind)
	require.ErrorContains(t, p.l.to.Records(&bunch.In{Data: *bitio.NewReader(m.data, m.bits-4)}), "pupil")
}

// TestValuesBeforeACallAreSentOnce: values in flight that go again before a reliable call, on the actor's own channel, aren't sent once more when the packet is lost.
func TestValuesBeforeACallAreSentOnce(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	p.l.drop, p.l.lost, a.N = true, true, 5
	p.steps(1)
	p.l.drop, p.l.lost = false, false
	require.NoError(t, poke.Call(a, 1))
	p.steps(1)
	updates := p.s.Counters.Updates
	p.serves(t, 6)
	require.EqualValues(t, 1, p.s.Counters.Resent, "the packet was lost")
	require.Equal(t, updates, p.s.Counters.Updates)
	require.EqualValues(t, 5, p.there(a).N)
}

// TestTotalIsTheSum: Explain's Total is what the opening and the records took.
func TestTotalIsTheSum(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	sum := p.s.Explain(p.l.peer, a).Total
	require.InDelta(t, 150, sum, 100)
	for n := range int32(5) {
		a.N = 1000*n + 1
		p.serve(t)
		e := p.s.Explain(p.l.peer, a)
		require.Positive(t, e.Bits)
		sum += uint64(e.Bits)
		require.Equal(t, sum, e.Total)
	}
}

// TestStarvedSaysForHowLong: Explain says for how many ticks there was no bandwidth for an actor, and what its last record took, if there was one.
func TestStarvedSaysForHowLong(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	for _, last := range []string{"no record of it was sent yet", "its last record took "} {
		p.l.starved = true
		a.N++
		p.serves(t, 1)
		since := p.s.Explain(p.l.peer, a).Waiting
		require.LessOrEqual(t, since, 1)
		p.serves(t, 5)
		e := p.s.Explain(p.l.peer, a)
		require.Equal(t, ReasonStarved, e.Reason)
		require.Equal(t, since+5, e.Waiting)
		require.Contains(t, e.Text, last)
		p.l.starved = false
		p.serves(t, 4)
		require.Equal(t, ReasonUpToDate, p.s.Explain(p.l.peer, a).Reason)
	}
}

type couple struct {
	Base
	Two struct{ A, B netguid.GUID } `net:""`
}

// TestExplainOfReferences: of a field with several references the one is named whose actor isn't there; one that is about to change is pending.
func TestExplainOfReferences(t *testing.T) {
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("couple", (*couple)(nil)))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	a, hidden := &couple{}, &couple{}
	require.NoError(t, s.Spawn(a))
	require.NoError(t, s.Spawn(hidden))
	p.l.peer.Hold(func(x Actor) bool { return x == Actor(hidden) })
	explain := func() Explanation { return s.Explain(p.l.peer, a, "Two") }
	p.steps(9)
	require.Equal(t, ReasonUpToDate, explain().Reason)
	a.Two.B = hidden.guid
	p.steps(9)
	require.Equal(t, ReasonUnmapped, explain().Reason)
	require.Contains(t, explain().Text, hidden.guid.String())
	a.Two.A = a.guid
	require.Equal(t, ReasonPending, explain().Reason)
	p.steps(9)
	require.Equal(t, ReasonUnmapped, explain().Reason)
	a.Two.B = a.guid
	p.steps(9)
	require.Equal(t, ReasonUpToDate, explain().Reason)
}

type tome struct {
	Base
	A, B string `net:"cap=8100"`
}

// TestTextsAroundTheRoom: a text of about as many bytes as the connection has room for arrives whole, or the game is told, once until it fits again.
func TestTextsAroundTheRoom(t *testing.T) {
	var failed []error
	s, c := NewServer(Config{Failed: func(err error) { failed = append(failed, err) }}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("tome", (*tome)(nil)))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	a := &tome{}
	require.NoError(t, s.Spawn(a))
	p.steps(9)
	got := c.Find(a.guid).(*tome)
	told := 0
	for n := laneRoom*lanePacket/8 - 16; n < laneRoom*lanePacket/8+2; n++ {
		a.A = strings.Repeat("x", n)
		p.steps(9)
		if got.A != a.A {
			require.Len(t, failed, 1, "%d bytes", n)
			require.ErrorIs(t, failed[0], channel.ErrTooLarge)
			told++
		}
		a.A, failed = "", nil
		p.steps(9)
		require.Empty(t, got.A)
		require.Empty(t, p.l.peer.oversize)
	}
	require.Greater(t, told, 2)
	require.Less(t, told, 16)

	large := strings.Repeat("y", 8050)
	a.A, a.B = large, large
	p.steps(9)
	require.Len(t, failed, 2)
	a.A = "fits"
	p.steps(9)
	require.Equal(t, "fits", got.A)
	a.B = large + "z"
	p.steps(9)
	require.Len(t, failed, 2, "it is told already")
	a.B = "too"
	p.steps(9)
	require.Equal(t, "too", got.B)
	require.Empty(t, p.l.peer.oversize)

	var took [2]int // Steps until the other one is there
	for i, first := range []string{strings.Repeat("c", 1500), large} {
		a.A, a.B = first, strings.Repeat(first[:1], 2000)
		for ; got.B != a.B && took[i] < 9; took[i]++ {
			p.steps(1)
		}
		p.steps(9)
	}
	require.Equal(t, took[0], took[1], "a value that never fits holds no others up")
	require.NotEmpty(t, p.l.peer.oversize)
	require.NoError(t, s.Destroy(a))
	s.Consistent(t)
}

// TestBandwidthOfManyPackets: records that are larger than those before them take no more bandwidth than there is, however many packets they go in.
func TestBandwidthOfManyPackets(t *testing.T) {
	p := newPair(t)
	all := p.newPupils(t, 100)
	p.serves(t, 4)
	p.l.scarce, p.l.narrow, p.l.free = true, 600, 600
	for i, a := range all {
		a.N, a.Who, a.Line = int32(1_000_000*i), netguid.GUID(1_000_000*i), [2]float64{float64(1000 * i), float64(-9999 * i)}
	}
	for range 4 {
		p.l.chunks = nil
		p.steps(1)
		sum := 0
		for _, n := range p.l.chunks {
			sum += n
		}
		require.Greater(t, sum, 1000)
		require.Less(t, sum, 2000+600)
	}
}

// TestElementsAreSentOnce: an element of a list isn't sent again with the next, whether it went in a record or, with many others, on the actor's own channel.
func TestElementsAreSentOnce(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	a := p.newPupil(t)
	v := p.l.peer.views[a.base()]
	add := func(n int) {
		for range n {
			_, err := a.List.Add(7)
			require.NoError(t, err)
		}
		p.serves(t, 4)
	}
	for range 10 {
		add(10)
	}
	add(1)
	require.Less(t, v.lastBits, int32(150))
	require.Zero(t, p.s.Counters.Large)
	add(500)
	large := p.s.Counters.Large
	require.NotZero(t, large)
	add(1)
	require.Less(t, v.lastBits, int32(150))
	require.Equal(t, large, p.s.Counters.Large)
	require.Equal(t, 602, p.there(a).List.Len())
}

// TestOwnerAmidItsOpening: who becomes an actor's owner when only the last bunch of its opening is to be sent knows it from the first moment.
func TestOwnerAmidItsOpening(t *testing.T) {
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("tome", (*tome)(nil)))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	p.steps(9)
	a := &tome{A: strings.Repeat("a", 5000), B: strings.Repeat("b", 7000)}
	require.NoError(t, s.Spawn(a))
	p.steps(1)
	v := p.l.peer.views[a.base()]
	require.Equal(t, v.b.class.layout.FieldMask("B"), v.rest)
	a.SetOwner(p.l.peer)
	p.steps(9)
	require.True(t, c.Find(a.guid).(*tome).IsOwned())
	require.Equal(t, a.B, c.Find(a.guid).(*tome).B)
}

// TestSilentWorld: of a world that is read, rather than shown, the game is told nothing: neither by its actors nor by the Config of the world that it reads for.
func TestSilentWorld(t *testing.T) {
	s := NewServer(Config{})
	require.NoError(t, s.Register("pupil", (*pupil)(nil)))
	p := newPair(t)
	c, err := p.c.silent()()
	require.NoError(t, err)
	p = &pair{s: s, c: c, l: addLane(t, s, c)}
	p.serves(t, 4)
	a := p.newPupil(t)
	require.Empty(t, p.tell(t))
	a.N = 8
	p.serves(t, 4)
	require.EqualValues(t, 8, p.there(a).N)
	require.Empty(t, p.tell(t))
	require.NoError(t, s.Destroy(a))
	p.serves(t, 4)
	require.Empty(t, p.tell(t))
	require.Zero(t, c.Len())
}

// TestCallsOfAClosingConnection: calls that wait for an actor that a client doesn't have are dropped once when its connection closes, and told.
func TestCallsOfAClosingConnection(t *testing.T) {
	var failed []error
	s, c := NewServer(Config{Failed: func(err error) { failed = append(failed, err) }}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	p.serves(t, 4)
	p.newPupil(t)
	p.l.full = true
	a := &pupil{}
	require.NoError(t, s.Spawn(a))
	p.serves(t, 2)
	require.NoError(t, poke.Call(a, 1))
	o := &channelOutlet{peer: p.l.peer}
	require.True(t, o.Finish(nil))
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], channel.ErrClosed)
	require.Empty(t, p.l.peer.views[a.base()].calls)
	require.EqualValues(t, 1, s.Counters.CallsDropped)
	s.RemoveConn(p.l.peer)
	require.EqualValues(t, 1, s.Counters.CallsDropped)
	s.Consistent(t)
}
