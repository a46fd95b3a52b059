package actorrep_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// idle lets a server step without a change and without its network, which knows no Steps.
func (w *world) idle(steps int) {
	for range steps {
		w.Server.Step(w.Now)
	}
}

// TestIdlePastTheFrame: what changes after any number of Steps in which nothing did is there on the client, in the first
// change that arrives.
func TestIdlePastTheFrame(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{})
	l := w.join()
	s := &ship{Armor: 1}
	require.NoError(t, w.Server.Spawn(s))
	w.converge()
	for range 30 {
		s.Pos.X++
		w.Step()
	}
	w.converge()
	check := func(what string) {
		t.Helper()
		stale := l.World.Counters.Stale
		s.Armor, s.Pos.X = s.Armor%90+1, s.Pos.X+5
		for range 10 {
			w.Step()
		}
		require.Empty(t, w.same(l), what)
		require.Equal(t, stale, l.World.Counters.Stale, what)
		require.Equal(t, actorrep.ReasonUpToDate, w.Server.Explain(l.Peer, s).Reason, what)
		require.Equal(t, w.Server.Frame()-9, l.World.Find(s.GUID()).(*ship).World().Frame(), what)
	}
	w.idle(70_000) // these are done one by one
	check("70,000 Steps")
	for _, bits := range []int{13, 14, 15, 16, 17, 24, 30} {
		for _, d := range []int{-1, 0, 1} {
			w.Server.SetFrame(w.Server.Frame() + uint32(1<<bits+d-10))
			check(fmt.Sprintf("2^%d%+d", bits, d))
		}
	}
	w.Server.SetFrame(w.Server.Frame() + 72*3600*60)
	check("72 h at 60 Hz")
	if os.Getenv("CI") != "" {
		w.idle(12 * 3600 * 60)
		check("12 h at 60 Hz, one by one")
	}
}

// TestFramesWrap: a server whose frames wrap while it plays, over a bad network, with a client from before and one from after.
func TestFramesWrap(t *testing.T) {
	for _, bits := range []int{14, 15, 16, 31, 32} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			w := newWorld(t, uint64(bits), netsim.Settings{Loss: 10, Order: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}, actorrep.Config{})
			w.Server.SetFrame(uint32(1<<bits - 100))
			w.join()
			for i := range 300 {
				if i == 150 {
					w.join()
				}
				w.mutate()
				w.Step()
			}
			w.converge()
		})
	}
}

// TestSpawnedAsFramesWrap: actors that say themselves when they change are spawned around the Step in which the frame is 0, and change later.
func TestSpawnedAsFramesWrap(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("flag", (*flag)(nil)))
	})
	l := w.join()
	for range 10 {
		w.Step()
	}
	w.Server.SetFrame(1<<32 - 3)
	var flags []*flag
	for i := range 6 {
		for _, sleeps := range []bool{false, true} {
			f := &flag{}
			f.Up.Set(uint8(i))
			require.NoError(t, w.Server.Spawn(f))
			require.NoError(t, f.SetDormant(sleeps))
			flags = append(flags, f)
		}
		w.Step()
	}
	for n := range uint8(3) {
		for _, f := range flags {
			f.Up.Set(10 * (n + 1))
		}
		for range 10 {
			w.Step()
		}
		for i, f := range flags {
			require.Equal(t, f.Up.Get(), l.World.Find(f.GUID()).(*flag).Up.Get(), "actor %d", i)
		}
	}
}

// flag is compared only when it says so.
type flag struct {
	actorrep.Base
	Up actorrep.Var[uint8] `net:""`
}

// TestSleepersPastTheFrame: actors that sleep and wake far apart, and what went while they slept.
func TestSleepersPastTheFrame(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{})
	w.join()
	s, r := &ship{Armor: 3}, &rock{Size: 1}
	require.NoError(t, w.Server.Spawn(s))
	require.NoError(t, w.Server.Spawn(r))
	w.converge()
	for i, d := range []uint32{1 << 15, 1 << 16, 1 << 30, 72 * 3600 * 60} {
		require.NoError(t, s.SetDormant(true))
		for range 20 {
			w.Step()
		}
		w.Server.SetFrame(w.Server.Frame() + d)
		require.NoError(t, s.SetDormant(false))
		s.Armor = uint8(10 + i)
		w.converge()
	}
	require.NoError(t, s.SetDormant(true))
	for range 20 {
		w.Step()
	}
	w.Server.SetFrame(w.Server.Frame() + 1<<30)
	require.NoError(t, w.Server.Destroy(s))
	w.converge()
}

// TestIDsComeAgain: when all ids were given, actors get those that nobody has.
func TestIDsComeAgain(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{})
	w.join()
	first, gone := &rock{Size: 1}, &rock{Size: 2}
	require.NoError(t, w.Server.Spawn(first))
	require.NoError(t, w.Server.Spawn(gone))
	w.converge()
	require.NoError(t, w.Server.Destroy(gone))
	w.Server.SpendIDs()
	again := &rock{Size: 3}
	require.NoError(t, w.Server.Spawn(again))
	require.Equal(t, gone.GUID(), again.GUID())
	w.converge()
}
