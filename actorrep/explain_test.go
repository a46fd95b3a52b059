package actorrep_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// heroFields compares the fields of a hero with a client's, each in its way.
var heroFields = map[string]func(h, m *hero) bool{
	"Pos":      func(h, m *hero) bool { return near(&hero{Pos: h.Pos}, &hero{Pos: m.Pos}) == "" },
	"Rot":      func(h, m *hero) bool { return near(&hero{Rot: h.Rot}, &hero{Rot: m.Rot}) == "" },
	"Health":   func(h, m *hero) bool { return h.Health.Get() == m.Health.Get() },
	"Title":    func(h, m *hero) bool { return h.Title.Get() == m.Title.Get() },
	"Secret":   func(h, m *hero) bool { return h.Secret == m.Secret },
	"Outside":  func(h, m *hero) bool { return h.Outside == m.Outside },
	"Puppet":   func(h, m *hero) bool { return h.Puppet == m.Puppet },
	"Control":  func(h, m *hero) bool { return h.Control == m.Control },
	"Switched": func(h, m *hero) bool { return h.Switched == m.Switched },
	"Bag":      func(h, m *hero) bool { return fmt.Sprint(h.Bag) == fmt.Sprint(m.Bag) },
	"Numbers":  func(h, m *hero) bool { return fmt.Sprint(h.Numbers) == fmt.Sprint(m.Numbers) },
	"Raw":      func(h, m *hero) bool { return string(h.Raw) == string(m.Raw) },
	"Friend":   func(h, m *hero) bool { return h.Friend == m.Friend },
	"Nested":   func(h, m *hero) bool { return h.Nested == m.Nested },
	"Big":      func(h, m *hero) bool { return h.Big.Get() == m.Big.Get() || math.IsNaN(h.Big.Get()) },
}

// believe asks Explain of all that a client may have, and fails where it says "up to date" of what isn't.
func (d *drama) believe(when string) (up int) {
	for _, l := range d.Lines {
		for _, h := range d.heroes {
			m, _ := l.World.Find(h.GUID()).(*hero)
			whole := d.Server.Explain(l.Peer, h)
			for name, same := range heroFields {
				e := d.Server.Explain(l.Peer, h, name)
				if e.Reason == actorrep.ReasonUpToDate {
					up++
					require.True(d.T, m != nil && same(h, m), "%s at %v: %s of %v: %s; the actor: %s", when, d.Now, name, h.GUID(), e.Text, whole.Text)
				}
				if whole.Reason == actorrep.ReasonUpToDate && e.Reason != actorrep.ReasonCondition && e.Reason != actorrep.ReasonInactive {
					require.True(d.T, m != nil && same(h, m), "%s at %v: %v is %s, but %s isn't: %s", when, d.Now, h.GUID(), whole.Text, name, e.Text)
				}
			}
		}
	}
	return up
}

// TestExplainIsTrue: at any moment, whatever happens, Explain says "up to date" of nothing that a client doesn't have.
func TestExplainIsTrue(t *testing.T) {
	nets := map[string]netsim.Settings{
		"bad":   {Loss: 10, Dup: 5, Order: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond},
		"worse": {Loss: 35, Dup: 10, Order: 20, LagMin: 10 * time.Millisecond, LagMax: 150 * time.Millisecond},
	}
	for name, set := range nets {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				d := newDrama(t, seed, set, actorrep.Config{})
				if seed%2 == 1 {
					d.Speed = 4 << 10
				}
				up := 0
				d.Heard = func() { up += d.believe("before the Step") }
				for range 3 {
					d.join()
				}
				for range 300 {
					d.happen()
					up += d.believe("set")
					d.Step()
					d.forbidden()
					up += d.believe("behind the Step")
				}
				d.Heard = nil
				d.quiet()
				require.Greater(t, up, 1000)
			})
		}
	}
}

// ledger has a fast array, more numbers than units, and is compared only when somebody says so.
type ledger struct {
	actorrep.Base
	Total int64                        `net:""`
	Sums  [100]int32                   `net:""`
	Lines fastarray.Map[string, int32] `net:""`
	Name  actorrep.Var[string]         `net:""`
}

// TestExplainUnmarked: Explain says of a value that was set when it is compared, or what must be called so that it is.
func TestExplainUnmarked(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("ledger", (*ledger)(nil), actorrep.Manual()))
		require.NoError(t, w.Register("ship", (*ship)(nil)))
	})
	l := w.join()
	b, s := &ledger{}, &ship{}
	require.NoError(t, w.Server.Spawn(b))
	require.NoError(t, w.Server.Spawn(s))
	require.NoError(t, s.SetUpdateFrequency(1))
	steps := func(n int) {
		for range n {
			w.Step()
		}
	}
	says := func(a actorrep.Actor, reason actorrep.Reason, text string, field ...string) {
		t.Helper()
		e := w.Server.Explain(l.Peer, a, field...)
		require.Equal(t, reason, e.Reason, e.Text)
		require.Contains(t, e.Text, text)
	}
	steps(60)
	says(b, actorrep.ReasonUpToDate, "")
	says(s, actorrep.ReasonUpToDate, "")

	for i, set := range []func(){func() { b.Total++ }, func() { b.Sums[77]++ }} {
		field := []string{"Total", "Sums"}[i]
		set()
		says(b, actorrep.ReasonUnmarked, field)
		says(b, actorrep.ReasonUnmarked, "MarkDirty", field)
		says(b, actorrep.ReasonUpToDate, "", "Name")
		steps(3)
		says(b, actorrep.ReasonUnmarked, "MarkDirty", field)
		b.MarkDirty()
		says(b, actorrep.ReasonPending, "next Step", field)
		steps(3)
		says(b, actorrep.ReasonUpToDate, "", field)
	}
	b.Total++
	for i, set := range []func(){func() { b.Lines.Set("iron", 3) }, func() { b.Name.Set("n") }} {
		field := []string{"Lines", "Name"}[i]
		set()
		says(b, actorrep.ReasonPending, "next Step", field)
		says(b, actorrep.ReasonPending, "next Step", field)
		steps(3)
		says(b, actorrep.ReasonUpToDate, "", field)
		says(b, actorrep.ReasonUnmarked, "MarkDirty", "Total") // a mark of another field says nothing of it
	}
	require.Equal(t, b.Total-1, l.World.Find(b.GUID()).(*ledger).Total)

	s.Armor = 3
	says(s, actorrep.ReasonPending, "update frequency", "Armor")
	require.NoError(t, s.SetUpdateFrequency(0))
	steps(3)
	says(s, actorrep.ReasonUpToDate, "")
	require.NoError(t, s.SetDormant(true))
	w.Step()
	since := w.Now // it is found to be dormant in the Step behind the call
	steps(8)
	says(s, actorrep.ReasonDormant, "dormant for")
	require.InDelta(t, w.Now-since, w.Server.Explain(l.Peer, s).Dormant, float64(tick))
	require.Zero(t, w.Server.Explain(l.Peer, s).Waiting, "nothing waits")
	s.Armor = 4
	says(s, actorrep.ReasonUnmarked, "FlushDormancy")
	s.FlushDormancy()
	says(s, actorrep.ReasonDormant, "", "Score")
	steps(9)
	says(s, actorrep.ReasonDormant, "dormant for")
	require.EqualValues(t, 4, l.World.Find(s.GUID()).(*ship).Armor)
}

// TestForgottenFlush: values of dormant actors that the game sets and never flushes are counted, not those that it flushes in the same tick, that aren't active or that
// don't fit, nor those of actors that are awake.
func TestForgottenFlush(t *testing.T) {
	var failed []error
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("sleeper", (*sleeper)(nil)))
	})
	w.join()
	all := make([]*sleeper, 10)
	for i := range all {
		all[i] = &sleeper{}
		require.NoError(t, w.Server.Spawn(all[i]))
		require.NoError(t, all[i].SetDormant(i != 0))
	}
	require.NoError(t, all[2].SetCondition("Now", false))
	steps := func(n int) {
		for range n {
			w.Step()
		}
	}
	steps(60)
	for range 30 {
		all[0].N++
		all[1].N++
		all[1].FlushDormancy()
		all[2].Now++
		steps(1)
	}
	all[4].List = make([]uint8, 9)
	all[4].FlushDormancy()
	steps(50)
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], actorrep.ErrUnfit)
	require.Zero(t, w.Server.Counters.Unflushed)
	all[7].N++
	steps(50)
	require.EqualValues(t, 5, w.Server.Counters.Unflushed, "one of ten in each Step")
	all[7].FlushDormancy()
	steps(50)
	require.EqualValues(t, 5, w.Server.Counters.Unflushed)
}

// TestForgottenFlushBeforeItsTime: an actor that sleeps, and waits for the time that its update frequency says, may be flushed before. What the game changes after
// that isn't sent when the time comes, so it is counted at once.
func TestForgottenFlushBeforeItsTime(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("sleeper", (*sleeper)(nil)))
	})
	l := w.join()
	s := &sleeper{}
	require.NoError(t, w.Server.Spawn(s))
	require.NoError(t, s.SetUpdateFrequency(0.5))
	for range 200 {
		w.Step()
	}
	require.NoError(t, s.SetDormant(true))
	for range 200 {
		w.Step()
	}
	s.N = 1
	s.FlushDormancy()
	w.Step()
	s.N = 2
	s.MarkDirty()
	w.Step() // it waits for its time
	s.N = 3
	s.FlushDormancy()
	w.Step()
	s.N = 4
	for range 200 {
		w.Step()
	}
	require.EqualValues(t, 200, w.Server.Counters.Unflushed)
	require.EqualValues(t, 3, l.World.Find(s.GUID()).(*sleeper).N)
}

type sleeper struct {
	actorrep.Base
	N    int32   `net:""`
	Now  int32   `net:"custom"`
	List []uint8 `net:"cap=4"`
}
