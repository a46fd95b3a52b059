package actorrep_test

import (
	"math"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// hand refers to what it holds.
type hand struct {
	actorrep.Base
	Holds actorrep.Ref[*hand] `net:"notify=OnHolds"`
	N     uint32              `net:""`
}

// OnHolds does nothing.
func (h *hand) OnHolds() {}

func registerHand(w *actorrep.World) error { return w.Register("hand", (*hand)(nil)) }

// TestSleepersLeaveNothingBehind: an actor that wakes and sleeps again and again costs its client no more memory each time.
func TestSleepersLeaveNothingBehind(t *testing.T) {
	w := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, registerHand)
	l := w.Join(registerHand)
	h := &hand{}
	require.NoError(t, w.Server.Spawn(h))
	for i := range 1000 {
		h.N++
		require.NoError(t, h.SetDormant(i%2 == 0))
		for range 8 {
			w.Step()
		}
	}
	require.LessOrEqual(t, actorrep.Referring(l.World), 16)
}

// TestDestroyedActorsGo: a client that acks nothing keeps no destroyed actor alive on the server, also not one that slept or wasn't relevant before. Nor does one that was
// removed and lives on.
func TestDestroyedActorsGo(t *testing.T) {
	for _, removed := range []bool{false, true} {
		destroyedGo(t, removed)
	}
}

func destroyedGo(t *testing.T, removed bool) {
	seen := true
	w := rig.New(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: -1, Relevant: func(*actorrep.Peer, actorrep.Actor) bool { return seen }}, registerHand)
	l := w.Join(registerHand)
	var all []weak.Pointer[hand]
	var live []*hand
	spawn := func(n int) {
		for range n {
			h := &hand{}
			require.NoError(t, w.Server.Spawn(h))
			all, live = append(all, weak.Make(h)), append(live, h)
		}
	}
	dark := func() {
		w.Now += rig.Tick
		w.Server.Step(w.Now)
		w.Lose()
	}
	spawn(10)
	for range 30 {
		w.Step()
	}
	require.NoError(t, live[0].SetDormant(true))
	for _, seen = range []bool{false, true, false, true} {
		spawn(3)
		dark()
		dark()
	}
	l.Peer.SetViewTarget(live[1])
	if removed {
		w.Server.RemoveConn(l.Peer)
	}
	for _, h := range live {
		require.NoError(t, w.Server.Destroy(h))
	}
	live = nil
	for range 30 {
		dark()
	}
	runtime.GC()
	for i, h := range all {
		require.Nil(t, h.Value(), "%d", i)
	}
	w.Server.Consistent(t)
	require.NotZero(t, l.S.Table().Len())
}

// TestRelevantForEver: with the largest RelevantTimeout an actor stays.
func TestRelevantForEver(t *testing.T) {
	seen := true
	w := rig.New(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: math.MaxInt64, Relevant: func(*actorrep.Peer, actorrep.Actor) bool { return seen }}, registerHand)
	l := w.Join(registerHand)
	h := &hand{}
	require.NoError(t, w.Server.Spawn(h))
	for range 30 {
		w.Step()
	}
	seen = false
	for range 300 {
		w.Step()
	}
	require.NotNil(t, l.World.Find(h.GUID()))
	require.Greater(t, w.Server.Explain(l.Peer, h).Leaves, time.Hour)
}

// TestUpdateFrequencyOfAlmostNever: an interval that no Duration holds is a very long one.
func TestUpdateFrequencyOfAlmostNever(t *testing.T) {
	for _, hz := range []float64{1e-12, math.SmallestNonzeroFloat64} {
		w := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, registerHand)
		l := w.Join(registerHand)
		h := &hand{}
		require.NoError(t, w.Server.Spawn(h))
		for range 30 {
			w.Step()
		}
		require.NoError(t, h.SetUpdateFrequency(hz))
		for range 30 {
			w.Step()
		}
		compared := w.Server.Counters.Compared
		for range 100 {
			h.N++
			w.Step()
		}
		require.LessOrEqual(t, w.Server.Counters.Compared-compared, uint64(1))
		for _, bad := range []float64{-3, math.NaN(), math.Inf(-1)} {
			require.ErrorContains(t, h.SetUpdateFrequency(bad), "must be 0, for every Step, or above")
		}
		h.ForceUpdate()
		for range 10 {
			w.Step()
		}
		m, _ := l.World.Find(h.GUID()).(*hand)
		require.Equal(t, h.N, m.N)
	}
}

// TestExplainSleepers: an actor that was put to sleep isn't said to sleep while values are on their way.
func TestExplainSleepers(t *testing.T) {
	w := rig.New(t, 1, netsim.Settings{LagMin: 200 * time.Millisecond, LagMax: 200 * time.Millisecond}, actorrep.Config{}, registerHand)
	l := w.Join(registerHand)
	h := &hand{}
	require.NoError(t, w.Server.Spawn(h))
	for range 60 {
		w.Step()
	}
	check := func() {
		for range 60 {
			w.Step()
			if m, _ := l.World.Find(h.GUID()).(*hand); m.N != h.N {
				require.NotEqual(t, actorrep.ReasonDormant, w.Server.Explain(l.Peer, h).Reason)
			}
		}
		require.Equal(t, actorrep.ReasonDormant, w.Server.Explain(l.Peer, h).Reason)
	}
	h.N++
	require.NoError(t, h.SetDormant(true))
	check()
	h.N++
	h.FlushDormancy()
	check()
}

// TestExplainWithoutAClient: the player at the server, and a connection that was removed, have explanations too.
func TestExplainWithoutAClient(t *testing.T) {
	w := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, registerHand)
	l := w.Join(registerHand)
	h := &hand{}
	require.NoError(t, w.Server.Spawn(h))
	for range 30 {
		w.Step()
	}
	require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(l.Peer, h).Reason)
	require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(w.Server.Local(), h).Reason)
	w.Server.RemoveConn(l.Peer)
	require.Contains(t, w.Server.Explain(l.Peer, h).Text, "removed")
}

// TestManyThatReferGo: of many actors with references that disappear at once, all references are looked at once, not for each.
func TestManyThatReferGo(t *testing.T) {
	w := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, registerHand)
	l := w.Join(registerHand)
	stays := &hand{}
	require.NoError(t, w.Server.Spawn(stays))
	var all []*hand
	for range 100 {
		h := &hand{Holds: actorrep.RefTo(stays)}
		require.NoError(t, w.Server.Spawn(h))
		all = append(all, h)
	}
	stays.Holds = actorrep.RefTo(all[50])
	w.Await("all", w.Step, func() bool { return l.World.Len() == 101 })
	for _, h := range all {
		require.NoError(t, w.Server.Destroy(h))
	}
	w.Server.Step(w.Now)
	l.S.Tick(w.Now)
	for p, ok := l.Down.Pop(w.Now); ok; p, ok = l.Down.Pop(w.Now) {
		require.NoError(t, l.C.ReceivedPacket(w.Now, p))
	}
	l.C.PostTickDispatch(w.Now)
	require.Equal(t, 1, l.World.Len())
	require.Equal(t, 100, actorrep.Missed(l.World))
	l.World.Step(w.Now)
	require.Zero(t, actorrep.Missed(l.World))
	l.World.Consistent(t)
}
