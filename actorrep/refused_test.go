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

// TestRefusedCallsAreTold: a client's reliable call that is under way when its actor changes owner, goes, or is above the rate, runs, or
// the client is told that it was refused. No call does both.
func TestRefusedCallsAreTold(t *testing.T) {
	for _, set := range []netsim.Settings{{LagMin: 50 * time.Millisecond, LagMax: 50 * time.Millisecond},
		{LagMin: 40 * time.Millisecond, LagMax: 90 * time.Millisecond, Loss: 20}} {
		var ran [2]int
		var w *rig.Rig
		hit := func(c actorrep.Call, _ *bell, n uint8) error {
			require.Less(t, n, uint8(2))
			if w.Lines[n].Peer != c.Peer {
				t.Fatal("another's call")
			}
			ran[n]++
			return nil
		}
		ring := actorrep.ServerRPC(hit, actorrep.Reliable)
		poke := actorrep.ServerRPC(hit, actorrep.Reliable, actorrep.AnyClient)
		pull := actorrep.ServerRPC(hit, actorrep.Reliable, actorrep.RateLimit(5, 1))
		procedures := []*actorrep.RPC[*bell, uint8]{ring, poke, pull}
		register := func(w *actorrep.World) error {
			return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Ring": ring, "Poke": poke, "Pull": pull})
		}
		w = rig.New(t, 7, set, actorrep.Config{}, register)
		lines := []*rig.Line{w.JoinOther(register), w.JoinOther(register)}
		bells := make([]*bell, 3)
		calls := [2]int{}
		for i := range 6000 {
			for j, b := range bells {
				switch {
				case b == nil || i%150 == 100+j:
					if b != nil {
						require.NoError(t, w.Server.Destroy(b))
					}
					bells[j] = &bell{}
					require.NoError(t, w.Server.Spawn(bells[j]))
				case w.Rand.IntN(12) == 0:
					b.SetOwner(lines[w.Rand.IntN(2)].Peer)
				}
			}
			for n, l := range lines {
				for a := range l.World.All {
					if f := procedures[w.Rand.IntN(3)]; w.Rand.IntN(3) == 0 && f.Call(a.(*bell), uint8(n)) == nil {
						calls[n]++
					}
				}
			}
			w.Step()
		}
		for range 300 {
			w.Step()
		}
		for n, l := range lines {
			perhaps, refused, of := 0, 0, map[error]int{}
			for _, err := range l.Failed {
				var e *actorrep.RefusedError
				if errors.As(err, &e) {
					of[e.Err] += e.Calls
					refused += e.Calls
					continue
				}
				require.ErrorIs(t, err, actorrep.ErrUnacked)
				perhaps++
			}
			require.EqualValues(t, refused, l.World.Counters.CallsRefused)
			t.Logf("client %d: of %d calls %d ran, %d were refused, %d have an unknown fate; told: %v", n, calls[n], ran[n], refused, perhaps, of)
			require.Greater(t, calls[n], 1000)
			require.NotZero(t, of[actorrep.ErrNotOwner])
			require.NotZero(t, of[actorrep.ErrActorGone])
			if set.Loss > 0 { // calls within the rate that are held up come together
				require.NotZero(t, of[actorrep.ErrRateLimited])
			}
			require.LessOrEqual(t, ran[n]+refused, calls[n])
			require.GreaterOrEqual(t, ran[n]+refused+perhaps, calls[n])
		}
		require.EqualValues(t, w.Server.Counters.CallsRefused, lines[0].World.Counters.CallsRefused+lines[1].World.Counters.CallsRefused)
	}
}

// exchange lets time pass for the connections only.
func exchange(w *rig.Rig, l *rig.Line, ticks int) {
	for range ticks {
		w.Now += rig.Tick
		for p, ok := l.Up.Pop(w.Now); ok; p, ok = l.Up.Pop(w.Now) {
			_ = l.S.ReceivedPacket(w.Now, p)
		}
		for p, ok := l.Down.Pop(w.Now); ok; p, ok = l.Down.Pop(w.Now) {
			_ = l.C.ReceivedPacket(w.Now, p)
		}
		l.S.PostTickDispatch(w.Now)
		l.C.PostTickDispatch(w.Now)
		l.S.Tick(w.Now)
		l.C.Tick(w.Now)
	}
}

// TestManyRefusals: what a client is told of refused calls in a Step is bounded, and none is forgotten.
func TestManyRefusals(t *testing.T) {
	ring := actorrep.ServerRPC(func(actorrep.Call, *bell, uint8) error { return nil }, actorrep.Reliable)
	murmur := actorrep.ServerRPC(func(actorrep.Call, *bell, uint8) error { return nil })
	register := func(w *actorrep.World) error {
		return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Ring": ring, "Murmur": murmur})
	}
	w := rig.New(t, 7, netsim.Settings{}, actorrep.Config{}, register)
	l := w.JoinOther(register)
	var bells []*bell
	for range 70 {
		b := &bell{}
		b.SetOwner(l.Peer)
		require.NoError(t, w.Server.Spawn(b))
		bells = append(bells, b)
	}
	w.Await("all bells", w.Step, func() bool { return l.World.Len() == 70 })
	w.Step()
	for _, b := range bells {
		require.NoError(t, ring.Call(l.World.Find(b.GUID()).(*bell), 1))
		require.NoError(t, ring.Call(l.World.Find(b.GUID()).(*bell), 2))
		_ = murmur.Call(l.World.Find(b.GUID()).(*bell), 2) // its loss is no news
		b.SetOwner(nil)
	}
	exchange(w, l, 60) // all arrive between two Steps of the server
	for range 10 {
		w.Step()
	}
	require.EqualValues(t, 140, l.World.Counters.CallsRefused)
	require.Len(t, l.Failed, 65)
	for i, err := range l.Failed {
		if i < 64 {
			require.ErrorContains(t, err, "bell.Ring of")
			require.ErrorContains(t, err, "the server refused 2 calls: actorrep: only the owner")
		} else {
			require.EqualError(t, err, "actorrep: the server refused 12 calls of several actors")
		}
	}
}
