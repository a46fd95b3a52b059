package actorrep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// clerk notes the calls that it hears.
type clerk struct {
	Base
	N int32 `net:""`

	ran []uint32
}

type dictation struct {
	Text []byte `net:"cap=20000"`
}

func hear(_ Call, c *clerk, n uint32) error {
	c.ran = append(c.ran, n)
	return nil
}

var (
	bid     = ClientRPC(hear, Reliable)
	hum     = ClientRPC(hear, Reliable)
	sing    = ClientRPC(hear, Reliable)
	dictate = ClientRPC(func(Call, *clerk, dictation) error { return nil }, Reliable)
)

// office is a server of clerks, and its client.
type office struct {
	s, c   *World
	l      *lane
	now    *time.Duration
	failed []error
}

func newOffice(t *testing.T, now *time.Duration, ids netguid.Share, rpcs RPCs) *office {
	o := &office{now: now}
	o.s = NewServer(Config{IDs: ids, Failed: func(err error) { o.failed = append(o.failed, err) }})
	o.c = NewClient(Config{Failed: func(err error) { t.Error(err) }})
	for _, w := range []*World{o.s, o.c} {
		require.NoError(t, w.Register("clerk", (*clerk)(nil), rpcs))
	}
	o.l = addLane(t, o.s, o.c)
	o.step(t, 4)
	return o
}

func (o *office) step(t *testing.T, n int) {
	for range n {
		*o.now += time.Second / 30
		o.s.Step(*o.now)
		for range 3 {
			o.l.deliver()
		}
		o.c.Step(*o.now)
		o.s.Consistent(t)
		o.c.Consistent(t)
	}
}

// TestDepartAndArrive: what Depart says of the calls under way runs once at the next server, in order; both ends count on. A call that the next
// server lacks is told there, and leaves its place.
func TestDepartAndArrive(t *testing.T) {
	now := 10 * time.Second
	all := RPCs{"Bid": bid, "Hum": hum, "Sing": sing}
	from := newOffice(t, &now, netguid.Share{Servers: 2}, all)
	to := newOffice(t, &now, netguid.Share{Server: 1, Servers: 2}, RPCs{"Bid": bid, "Sing": sing})
	alone := newOffice(t, &now, netguid.Share{Servers: 1}, all)
	at, quiet := &clerk{}, &clerk{}
	for _, a := range []*clerk{at, quiet} {
		require.NoError(t, from.s.Spawn(a))
		a.SetOwner(from.l.peer)
	}
	from.step(t, 4)
	ran := func(o *office) []uint32 { return o.c.Find(at.guid).(*clerk).ran }
	v := from.l.peer.views[at.base()]
	require.NoError(t, bid.Call(at, 1))
	from.step(t, 3)
	require.Equal(t, []uint32{1}, ran(from))
	require.Len(t, v.carry.kept, 1)
	v.forgetKept(1) // the client has acked it
	require.NoError(t, bid.Call(at, 2))
	from.step(t, 3)
	require.Equal(t, []uint32{1, 2}, ran(from))
	require.EqualValues(t, 2, v.carry.sent)
	require.NoError(t, bid.Call(at, 3))
	require.NoError(t, hum.Call(at, 4))
	require.NoError(t, sing.Call(at, 5))
	require.NoError(t, bid.Call(at, 6))
	state, err := from.s.Depart(at, nil, sing)
	require.NoError(t, err)

	to.c.Follow(from.c)
	came, other := &clerk{}, &clerk{}
	require.NoError(t, to.s.SpawnAs(came, nil, at.guid))
	require.NoError(t, to.s.SpawnAs(other, nil, quiet.guid))
	came.SetOwner(to.l.peer)
	other.SetOwner(to.l.peer)
	require.NoError(t, to.s.Arrive(came, state))
	require.Len(t, to.failed, 1, "one procedure is lacking")
	require.ErrorIs(t, to.failed[0], ErrNoProcedure)
	require.EqualValues(t, 1, to.s.Counters.CallsDropped)
	to.step(t, 4)
	require.Equal(t, []uint32{3, 6}, ran(to))
	carried := to.l.peer.views[came.base()].carry
	require.EqualValues(t, 6, carried.sent)
	require.Len(t, carried.kept, 5)
	require.NoError(t, bid.Call(came, 7))
	to.step(t, 3)
	require.Equal(t, []uint32{3, 6, 7}, ran(to))
	require.Empty(t, from.failed)

	// Nothing is said of the other: its calls wait, for a while.
	m := to.c.byGUID[quiet.guid].mirror
	require.True(t, m.awaits())
	to.c.now = m.openedAt + resumeWithin
	require.False(t, m.awaits())

	last := &clerk{}
	require.NoError(t, alone.s.Spawn(last))
	last.SetOwner(alone.l.peer)
	alone.step(t, 4)
	require.NoError(t, bid.Call(last, 1))
	alone.step(t, 3)
	require.ErrorIs(t, alone.s.Arrive(last, state), ErrShare)
}

// TestTooLargeForAnEmptyChannel: a call for which there is never room is dropped and told; those behind it are sent.
func TestTooLargeForAnEmptyChannel(t *testing.T) {
	now := time.Duration(0)
	o := newOffice(t, &now, netguid.Share{}, RPCs{"Bid": bid, "Dictate": dictate})
	at := &clerk{}
	require.NoError(t, o.s.Spawn(at))
	at.SetOwner(o.l.peer)
	o.step(t, 4)
	for _, last := range []bool{true, false} {
		o.failed = nil
		require.NoError(t, dictate.Call(at, dictation{make([]byte, laneRoom*lanePacket/8+1)}))
		if !last {
			require.NoError(t, bid.Call(at, 5))
		}
		o.step(t, 4)
		require.Len(t, o.failed, 1)
		require.ErrorIs(t, o.failed[0], ErrTooLarge)
	}
	require.Equal(t, []uint32{5}, o.c.Find(at.guid).(*clerk).ran)
	require.EqualValues(t, 2, o.s.Counters.CallsDropped)
}

// TestLateCallsOfOneGivenAway: an actor that was given to another server and destroyed here keeps nothing of the calls that still come, however many.
func TestLateCallsOfOneGivenAway(t *testing.T) {
	now := time.Duration(0)
	o := newOffice(t, &now, netguid.Share{Servers: 2}, RPCs{"Bid": bid})
	at := &clerk{}
	require.NoError(t, o.s.Spawn(at))
	at.SetOwner(o.l.peer)
	o.step(t, 4)
	v := o.l.peer.views[at.base()]
	_, err := o.s.Depart(at, nil)
	require.NoError(t, err)
	late := make([]byte, 60<<10)
	require.NoError(t, v.carry.hold(bitio.NewReader(late, len(late)*8)))
	require.Len(t, v.carry.held, 1)
	for n := range 10 {
		if n == 2 {
			require.NoError(t, o.s.Destroy(at))
		}
		require.NoError(t, o.l.peer.receiveCalls(v, bitio.NewReader(late, len(late)*8), v.carry), "%d", n)
	}
	require.Empty(t, v.carry.held)
	require.Empty(t, o.failed)
}
