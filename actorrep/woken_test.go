package actorrep_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// talent is an actor without replicated values, lantern one with a value for its owner only.
type talent struct{ actorrep.Base }

type lantern struct {
	actorrep.Base
	Oil uint8 `net:"owner"`
}

var (
	useTalent  = actorrep.ServerRPC0(func(actorrep.Call, *talent) error { return nil }, actorrep.Reliable)
	useLantern = actorrep.ServerRPC0(func(actorrep.Call, *lantern) error { return nil }, actorrep.Reliable)
)

// TestWakesWithoutAChange: SetDormant(false) wakes an actor at the clients whether or not a value has changed, and a client learns that it owns
// a dormant actor, or doesn't any more, when there is no value of it that it may have.
func TestWakesWithoutAChange(t *testing.T) {
	for _, loss := range []float64{0, 20} {
		w := newWorld(t, 4, netsim.Settings{Loss: loss}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
			require.NoError(t, w.Register("talent", (*talent)(nil), actorrep.RPCs{"Use": useTalent}))
			require.NoError(t, w.Register("lantern", (*lantern)(nil), actorrep.RPCs{"Use": useLantern}))
		})
		first, second := w.join(), w.join()
		a, b := &talent{}, &lantern{Oil: 3}
		for _, s := range []interface {
			actorrep.Actor
			SetOwner(*actorrep.Peer)
		}{a, b} {
			s.SetOwner(first.Peer)
			require.NoError(t, w.Server.Spawn(s))
		}
		steps := func() {
			for range 90 {
				w.Step()
			}
		}
		steps()
		require.NoError(t, a.SetDormant(true))
		require.NoError(t, b.SetDormant(true))
		steps()
		a1, b1 := first.World.Find(a.GUID()).(*talent), first.World.Find(b.GUID()).(*lantern)
		a2, b2 := second.World.Find(a.GUID()).(*talent), second.World.Find(b.GUID()).(*lantern)
		require.ErrorIs(t, useTalent.Call(a1), actorrep.ErrNotThere)
		require.Equal(t, actorrep.ReasonDormant, w.Server.Explain(first.Peer, a).Reason)

		a.SetOwner(second.Peer)
		b.SetOwner(second.Peer)
		steps()
		require.Equal(t, []bool{false, false, true, true}, []bool{a1.IsOwned(), b1.IsOwned(), a2.IsOwned(), b2.IsOwned()}, "loss %v", loss)
		require.EqualValues(t, 3, b2.Oil)
		require.Equal(t, actorrep.ReasonDormant, w.Server.Explain(first.Peer, a).Reason, "it sleeps again")

		require.NoError(t, a.SetDormant(false))
		require.NoError(t, b.SetDormant(false))
		require.Equal(t, actorrep.ReasonWaiting, w.Server.Explain(second.Peer, a).Reason)
		steps()
		require.NoError(t, useTalent.Call(a2))
		require.NoError(t, useLantern.Call(b2))
		require.ErrorIs(t, useLantern.Call(b1), actorrep.ErrNotOwner)
		require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(first.Peer, b).Reason)
		require.NoError(t, b.SetDormant(true))
		steps()
		b.Oil = 7
		b.FlushDormancy()
		require.Equal(t, actorrep.ReasonPending, w.Server.Explain(second.Peer, b).Reason, "the next Step compares it")
	}
}

// chart has fast arrays that are recorded in other ways than they change.
type chart struct {
	actorrep.Base
	Shown fastarray.List[bagItem]        `net:"custom"`
	Debts fastarray.Map[string, bagItem] `net:""`
}

// TestCheckpointsOfFastArrays: a checkpoint has fast arrays as they were recorded last: without what changed while they were switched off, and, where
// their actor's update frequency has it compared seldom, with what the frames behind it build on.
func TestCheckpointsOfFastArrays(t *testing.T) {
	register := func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("chart", (*chart)(nil)))
	}
	w := newWorld(t, 1, clean, actorrep.Config{}, register)
	a := &chart{}
	add := func(name string) {
		_, err := a.Shown.Add(bagItem{Name: name})
		require.NoError(t, err)
		require.NoError(t, a.Debts.Set(name, bagItem{Count: 1}))
	}
	add("first")
	require.NoError(t, w.Server.Spawn(a))
	var file bytes.Buffer
	rec, err := replay.Record(w.Server, &file, replay.Config{Rate: -1, Checkpoints: time.Second})
	require.NoError(t, err)
	require.NoError(t, a.SetUpdateFrequency(0.7))
	for i := range 300 {
		switch {
		case i == 100:
			require.NoError(t, a.SetCondition("Shown", false))
		case i == 101:
			add("secret")
		case i == 200:
			require.NoError(t, a.SetCondition("Shown", true))
		case i%10 == 0:
			add(string(rune('A' + i/10)))
		}
		w.Step()
	}
	require.NoError(t, rec.Close())

	play := func() (*replay.Replay, func() string) {
		r, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
		require.NoError(t, err)
		c := actorrep.NewClient(actorrep.Config{Failed: func(err error) { t.Error(err) }})
		register(t, c)
		require.NoError(t, r.Play(c))
		return r, func() (text string) {
			for m := range c.All {
				for _, v := range m.(*chart).Shown.All {
					text += v.Name + " "
				}
				text += "|"
				for k := range m.(*chart).Debts.All {
					text += k + " "
				}
			}
			return text
		}
	}
	r, shown := play()
	require.Equal(t, 9, r.Checkpoints())
	s, sought := play()
	for now := time.Duration(0); !r.Done(); now += tick {
		require.NoError(t, r.Step(now))
		require.NoError(t, s.Seek(r.Duration()))
		require.NoError(t, s.Seek(r.Position()))
		require.Equal(t, shown(), sought(), "at %v", r.Position())
		if r.Position() < 190*tick {
			require.NotContains(t, sought()[:len(sought())/2], "secret")
		}
	}
	require.Contains(t, shown(), "secret")
}
