package actorrep_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// walker is called by both ends, and notes what ran.
type walker struct {
	actorrep.Base
	ran  []uint32
	then func() // called by the first request; may be nil
}

var (
	request = actorrep.ServerRPC(func(_ actorrep.Call, w *walker, n uint32) error {
		w.ran = append(w.ran, n)
		if then := w.then; then != nil {
			w.then = nil
			then()
		}
		return nil
	}, actorrep.Reliable)
	inform = actorrep.ClientRPC(func(_ actorrep.Call, w *walker, n uint32) error {
		w.ran = append(w.ran, n)
		return nil
	}, actorrep.Reliable)
)

func registerWalker(w *actorrep.World) error {
	return w.Register("Walker", (*walker)(nil), actorrep.RPCs{"Ask": request, "Tell": inform})
}

// walk is a server of two, and a walker of a client's.
func walk(t *testing.T) (r *rig.Rig, l *rig.Line, at, mine *walker) {
	r = rig.New(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, actorrep.Config{IDs: netguid.Share{Servers: 2}, Failed: func(error) {}}, registerWalker)
	l = r.JoinOther(registerWalker)
	at = &walker{}
	require.NoError(t, r.Server.Spawn(at))
	at.SetOwner(l.Peer)
	r.Await("the walker", r.Step, func() bool {
		for a := range l.World.All {
			mine = a.(*walker)
		}
		return mine != nil
	})
	return r, l, at, mine
}

// TestDepartHoldsCalls: between Depart and Stay an actor isn't called: its server is told so, its client's calls wait and run at Stay, in order.
func TestDepartHoldsCalls(t *testing.T) {
	r, _, at, mine := walk(t)
	require.NoError(t, request.Call(mine, 1))
	for range 10 {
		r.Step()
	}
	state, err := r.Server.Depart(at, []byte("x"))
	require.NoError(t, err)
	require.Equal(t, "x", string(state[:1]))
	require.ErrorIs(t, inform.Call(at, 1), actorrep.ErrDeparted)
	for n := range uint32(5) {
		require.NoError(t, request.Call(mine, 2+n))
		for range 5 {
			r.Step()
		}
	}
	require.Equal(t, []uint32{1}, at.ran)
	r.Server.Stay(at)
	require.Equal(t, []uint32{1, 2, 3, 4, 5, 6}, at.ran)
	r.Server.Stay(at)
	require.NoError(t, inform.Call(at, 7))
	r.Await("the call", r.Step, func() bool { return len(mine.ran) == 1 })
	require.Len(t, at.ran, 6)
}

// TestAckedCallsDontGoAlong: Depart says how many calls the client has had, and which it may not have had: none when all are acked.
func TestAckedCallsDontGoAlong(t *testing.T) {
	r, _, at, mine := walk(t)
	for n := range uint32(3) {
		require.NoError(t, inform.Call(at, n))
		require.NoError(t, request.Call(mine, n))
	}
	for range 30 {
		r.Step()
	}
	require.Len(t, mine.ran, 3)
	state, err := r.Server.Depart(at, nil)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 3, 3, 0}, state, "servers it came to, calls to the client, calls of it, and those under way")
	r.Server.Stay(at)
	require.NoError(t, inform.Call(at, 3))
	r.Step()
	state, err = r.Server.Depart(at, nil)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 3, 3, 1}, state[:4], "the last isn't acked yet")
}

// TestStayAndDestroy: when a call that waited for Stay destroys its actor, the calls behind it don't run, and their client is told.
func TestStayAndDestroy(t *testing.T) {
	r, l, at, mine := walk(t)
	_, err := r.Server.Depart(at, nil)
	require.NoError(t, err)
	for n := range uint32(3) {
		require.NoError(t, request.Call(mine, n))
		for range 5 {
			r.Step()
		}
	}
	at.then = func() { require.NoError(t, r.Server.Destroy(at)) }
	r.Server.Stay(at)
	require.Equal(t, []uint32{0}, at.ran)
	r.Await("the refusal", r.Step, func() bool { return len(l.Failed) > 0 })
	var refused *actorrep.RefusedError
	require.ErrorAs(t, l.Failed[0], &refused)
	require.Equal(t, 2, refused.Calls)
	require.ErrorIs(t, refused, actorrep.ErrActorGone)

	// The same of one that ends its connection.
	r, l, at, mine = walk(t)
	_, err = r.Server.Depart(at, nil)
	require.NoError(t, err)
	for n := range uint32(3) {
		require.NoError(t, request.Call(mine, n))
		for range 5 {
			r.Step()
		}
	}
	at.then = func() { r.Server.RemoveConn(l.Peer) }
	r.Server.Stay(at)
	require.Equal(t, []uint32{0}, at.ran)
	require.Nil(t, at.Owner())
}

// TestArriveRefuses: what isn't of Depart is refused, with nothing changed; so are a server without a share of ids, an actor without an owner, and one that isn't there.
func TestArriveRefuses(t *testing.T) {
	r, _, at, _ := walk(t)
	require.ErrorIs(t, r.Server.Arrive(&walker{}, nil), actorrep.ErrNotSpawned)
	state, err := r.Server.Depart(at, nil)
	require.NoError(t, err)
	require.ErrorIs(t, r.Server.Arrive(at, state), actorrep.ErrDeparted)
	r.Server.Stay(at)
	require.NoError(t, inform.Call(at, 1))
	state, err = r.Server.Depart(at, nil)
	require.NoError(t, err)
	r.Server.Stay(at)
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range state {
		require.Error(t, r.Server.Arrive(at, state[:n]), n)
	}
	for range 2000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32() >> (rng.IntN(8) * 4))
		}
		_ = r.Server.Arrive(at, b) // nothing breaks
	}
	at.SetOwner(nil)
	require.ErrorIs(t, r.Server.Arrive(at, state), actorrep.ErrNoOwner)
	alone := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, registerWalker(alone))
	w := &walker{}
	require.NoError(t, alone.Spawn(w))
	_, err = alone.Depart(w, nil)
	require.ErrorIs(t, err, actorrep.ErrShare)
}

// TestOneAnswer: a client answers once which classes it has; another answer ends its connection.
func TestOneAnswer(t *testing.T) {
	r, l, _, _ := walk(t)
	require.Zero(t, r.Server.Counters.Bad)
	require.NoError(t, actorrep.AnswerAgain(l.World))
	r.Lines = nil // its connection is to close
	for range 30 {
		r.Step()
		l.C.Tick(r.Now)
		for p, ok := l.Up.Pop(r.Now); ok; p, ok = l.Up.Pop(r.Now) {
			_ = l.S.ReceivedPacket(r.Now, p)
		}
		l.S.Tick(r.Now)
	}
	require.True(t, l.S.Closed())
	require.EqualValues(t, 1, r.Server.Counters.Bad)
}

// TestCallBeforeTheAnswer: a call to an actor whose class the client lacks is told to the server's game once the client has answered.
func TestCallBeforeTheAnswer(t *testing.T) {
	var failed []error
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, registerWalker)
	l := r.JoinOther(func(*actorrep.World) error { return nil })
	at := &walker{}
	require.NoError(t, r.Server.Spawn(at))
	at.SetOwner(l.Peer)
	require.NoError(t, inform.Call(at, 1))
	require.Empty(t, failed)
	r.Await("the answer", r.Step, l.Peer.Ready)
	require.EqualValues(t, 1, r.Server.Counters.CallsDropped)
	require.ErrorIs(t, failed[0], actorrep.ErrNoClass)
}

// TestNoMemoryForClasses: what a client keeps of the server's classes counts among what its connection may hold.
func TestNoMemoryForClasses(t *testing.T) {
	_, l, _, _ := walk(t)
	require.ErrorIs(t, actorrep.DescribeWithoutMemory(l.World), channel.ErrMemory)
}
