package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/channel"
)

type trunk struct {
	actorrep.Base
	Low   uint32 `net:""`
	Data  []byte `net:"cap=8000"`
	More  []byte `net:"cap=8000"`
	High  uint32 `net:""`
	Large []byte `net:"cap=8000"`
}

// TestValueOverReliableBuffer: a value that a connection's ReliableBuffer has no room for even when all is acked isn't sent: the game is told
// once until it has fitted again, Explain says so, and everything else of the actor arrives, as do its calls: when it opens, is open, wakes and is torn off.
func TestValueOverReliableBuffer(t *testing.T) {
	var failed []error
	heard := 0
	call := actorrep.MulticastRPC0(func(c actorrep.Call, a *trunk) error {
		if !c.World.IsServer() {
			heard++
		}
		return nil
	}, actorrep.Reliable)
	w := newWorld(t, 3, clean, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("trunk", (*trunk)(nil), actorrep.RPCs{"Call": call}))
	})
	whole := w.join() // one with room for everything
	w.ReliableBuffer = 8
	l := w.join()
	steps := func(n int) {
		for range n {
			w.Step()
		}
	}
	toldOf := func(names ...string) {
		t.Helper()
		require.Len(t, failed, len(names))
		for i, name := range names {
			var of *actorrep.ActorError
			require.ErrorAs(t, failed[i], &of)
			require.Equal(t, []any{"trunk", name, l.Peer}, []any{of.Class, of.Name, of.Peer})
			require.ErrorIs(t, of, channel.ErrTooLarge)
		}
		failed = nil
	}
	at := func(l *rig.Line, a *trunk) *trunk {
		m, _ := l.World.Find(a.GUID()).(*trunk)
		require.NotNil(t, m)
		return m
	}

	// The opening has no room for two of its values.
	a := &trunk{Low: 1, Data: make([]byte, 7900), More: []byte{1, 2}, High: 2, Large: make([]byte, 7900)}
	require.NoError(t, w.Server.Spawn(a))
	require.NoError(t, call.Call(a))
	steps(60)
	m := at(l, a)
	require.Equal(t, []any{uint32(1), uint32(2), a.More}, []any{m.Low, m.High, m.More})
	require.Empty(t, m.Data)
	require.Empty(t, m.Large)
	require.Equal(t, a.Large, at(whole, a).Large)
	require.Equal(t, 2, heard, "at both clients")
	toldOf("Data", "Large")
	require.EqualValues(t, 2, w.Server.Counters.Unfit)
	for _, e := range []actorrep.Explanation{w.Server.Explain(l.Peer, a), w.Server.Explain(l.Peer, a, "Data")} {
		require.Equal(t, actorrep.ReasonUnfit, e.Reason, e.Text)
		require.Contains(t, e.Text, "Data")
		require.Contains(t, e.Text, "ReliableBuffer")
	}
	require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(l.Peer, a, "More").Reason)
	require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(whole.Peer, a).Reason)

	// It changes in each Step, with other values and calls: nobody is told again.
	for range 60 {
		a.Data[0]++
		a.Low++
		a.More = append(a.More, 1)
		require.NoError(t, call.Call(a))
		w.Step()
	}
	steps(10)
	require.Equal(t, []any{a.Low, a.More}, []any{m.Low, m.More})
	require.Equal(t, 122, heard)
	require.Empty(t, m.Data)
	require.Empty(t, failed)

	// It fits, and doesn't again.
	a.Data, a.Large = a.Data[:2000], nil
	steps(20)
	require.Equal(t, a.Data, m.Data)
	require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(l.Peer, a).Reason)
	before := a.Data
	a.Data = make([]byte, 8000)
	require.NoError(t, call.Call(a))
	steps(20)
	require.Equal(t, before, m.Data, "the last one that fitted")
	require.Equal(t, 124, heard)
	toldOf("Data")

	// Asleep, and awake again.
	require.NoError(t, a.SetDormant(true))
	steps(60)
	e := w.Server.Explain(l.Peer, a, "Data")
	require.Equal(t, actorrep.ReasonUnfit, e.Reason, e.Text)
	require.Equal(t, actorrep.ReasonDormant, w.Server.Explain(l.Peer, a, "More").Reason)
	a.Large, a.Low = make([]byte, 7900), 7
	a.FlushDormancy()
	steps(60)
	require.EqualValues(t, 7, m.Low)
	toldOf("Large")

	// The connection forgets the actor, and is told of it anew when it opens again.
	require.NoError(t, w.Server.Destroy(a))
	steps(60)
	b := &trunk{Data: make([]byte, 8000), High: 5}
	require.NoError(t, w.Server.Spawn(b))
	steps(60)
	require.EqualValues(t, 5, at(l, b).High)
	toldOf("Data")
	n := at(l, b)
	b.High = 6
	require.NoError(t, b.TearOff())
	steps(30)
	require.EqualValues(t, 6, n.High)
	require.Empty(t, failed)
}
