package actorrep_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// bell is an actor that its owner's client calls, whatever the server does with it meanwhile.
type bell struct {
	actorrep.Base
	Rings uint32 `net:""`
}

// TestCallsOfClientsWhileChannelsClose: a client's reliable call to an actor that sleeps or leaves its sight meanwhile runs, or the client
// is told, at 20 % loss.
func TestCallsOfClientsWhileChannelsClose(t *testing.T) {
	var ran []uint32
	ring := actorrep.ServerRPC(func(_ actorrep.Call, b *bell, n uint32) error {
		ran = append(ran, n)
		return nil
	}, actorrep.Reliable)
	seen := true
	told := 0
	w := rig.New(t, 5, netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: 20}, actorrep.Config{RelevantTimeout: -1,
		Relevant: func(*actorrep.Peer, actorrep.Actor) bool { return seen }}, func(w *actorrep.World) error {
		return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Ring": ring})
	})
	l := w.JoinOther(func(w *actorrep.World) error { return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Ring": ring}) })
	b := &bell{}
	b.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(b))
	sent := uint32(0)
	for i := range 9000 {
		if i%40 == 0 || i%40 == 10 {
			require.NoError(t, b.SetDormant(i%40 == 0))
		}
		if i%170 == 100 || i%170 == 115 {
			seen = i%170 == 115
		}
		if m, _ := l.World.Find(b.GUID()).(*bell); m != nil && w.Rand.IntN(3) == 0 && ring.Call(m, sent+1) == nil {
			sent++
		}
		w.Step()
	}
	require.NoError(t, b.SetDormant(false))
	seen = true
	for range 300 {
		w.Step()
	}
	for _, err := range l.Failed {
		require.ErrorIs(t, err, actorrep.ErrUnacked)
		var of *actorrep.ActorError
		require.True(t, errors.As(err, &of))
		require.Equal(t, "Ring", of.Name)
		told++
	}
	require.IsIncreasing(t, ran)
	require.Greater(t, sent, uint32(200))
	require.GreaterOrEqual(t, len(ran)+told, int(sent), "%d calls of %d ran, %d were told", len(ran), sent, told)
	t.Logf("%d calls of %d ran, %d were told as perhaps not", len(ran), sent, told)
}

// TestCallsOfClientsWhileChannelsFollow: the calls of a client run in order also when packets overtake each other and the actor sleeps and wakes so often that two of its
// channels close while a third is open.
func TestCallsOfClientsWhileChannelsFollow(t *testing.T) {
	var ran []uint32
	ring := actorrep.ServerRPC(func(_ actorrep.Call, b *bell, n uint32) error {
		ran = append(ran, n)
		return nil
	}, actorrep.Reliable)
	register := func(w *actorrep.World) error { return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Ring": ring}) }
	for seed := range uint64(4) {
		ran = ran[:0]
		w := rig.New(t, seed, netsim.Settings{LagMin: time.Millisecond, LagMax: 300 * time.Millisecond}, actorrep.Config{}, register)
		l := w.JoinOther(register)
		b := &bell{}
		b.SetOwner(l.Peer)
		require.NoError(t, w.Server.Spawn(b))
		sent := uint32(0)
		for range 6000 {
			if w.Rand.IntN(4) == 0 {
				require.NoError(t, b.SetDormant(!b.Dormant()))
			}
			if m, _ := l.World.Find(b.GUID()).(*bell); m != nil && ring.Call(m, sent+1) == nil {
				sent++
			}
			w.Step()
		}
		require.IsIncreasing(t, ran)
		require.Greater(t, sent, uint32(200))
		t.Logf("%d calls of %d ran", len(ran), sent)
	}
}

// TestDestroyOnAFullChannel: an actor whose channel has no room for calls is destroyed at once, and a call that a client has made to it doesn't run on the next actor in the same
// struct.
func TestDestroyOnAFullChannel(t *testing.T) {
	ran := 0
	ring := actorrep.ServerRPC(func(actorrep.Call, *bell, uint32) error {
		ran++
		return nil
	}, actorrep.Reliable)
	say := actorrep.MulticastRPC(func(actorrep.Call, *bell, uint32) error { return nil }, actorrep.Reliable)
	register := func(w *actorrep.World) error {
		return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Ring": ring, "Say": say})
	}
	w := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { require.ErrorIs(t, err, actorrep.ErrActorGone) }}, register)
	w.ReliableBuffer = 8
	l := w.JoinOther(register)
	b := &bell{}
	b.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(b))
	for range 30 {
		w.Step()
	}
	old := b.GUID()
	require.NoError(t, ring.Call(l.World.Find(old).(*bell), 1))
	ch := l.S.Table().Channel(w.Server.Explain(l.Peer, b).Channel)
	for ch.Room() > 0 {
		require.NoError(t, say.Call(b, 1))
		w.Now += rig.Tick
		w.Server.Step(w.Now)
		l.S.Tick(w.Now)
	}
	require.NoError(t, w.Server.Destroy(b))
	require.True(t, ch.Closing())
	*b = bell{}
	b.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(b))
	for range 30 {
		w.Step()
	}
	require.Nil(t, l.World.Find(old))
	require.NotNil(t, l.World.Find(b.GUID()))
	require.Zero(t, ran)
}
