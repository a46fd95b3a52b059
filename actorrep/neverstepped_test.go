package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestNeverStepped: a world with connections whose game never calls Step says so, once, at either end; one that calls it says nothing.
func TestNeverStepped(t *testing.T) {
	const words = "the game never calls World.Step"
	for _, server := range []bool{true, false} {
		var failed []error
		r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, registerWalker)
		lines := []*rig.Line{r.JoinOther(registerWalker), r.JoinOther(registerWalker)}
		tick := func() { // of everything but one end's worlds
			r.Now += rig.Tick
			for _, l := range lines {
				for p, ok := l.Up.Pop(r.Now); ok; p, ok = l.Up.Pop(r.Now) {
					require.NoError(t, l.S.ReceivedPacket(r.Now, p))
				}
				for p, ok := l.Down.Pop(r.Now); ok; p, ok = l.Down.Pop(r.Now) {
					require.NoError(t, l.C.ReceivedPacket(r.Now, p))
				}
				if server {
					l.World.Step(r.Now)
				}
			}
			if !server {
				r.Server.Step(r.Now)
			}
			for _, l := range lines {
				l.S.Tick(r.Now)
				l.C.Tick(r.Now)
			}
		}
		for range 15 {
			tick()
		}
		require.Empty(t, append(failed, lines[0].Failed...), "it may be called yet")
		for range 100 {
			tick()
		}
		for _, l := range lines {
			if server {
				require.Empty(t, l.Failed)
				continue
			}
			require.Len(t, l.Failed, 1)
			require.ErrorContains(t, l.Failed[0], words)
		}
		if server {
			require.Len(t, failed, 1)
			require.ErrorContains(t, failed[0], words)
		} else {
			require.Empty(t, failed)
		}
	}
}

// TestRemoveNobody: a game may remove the Peer of a connection that never joined.
func TestRemoveNobody(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	w.RemoveConn(nil)
	w.Step(1)
	for range w.Peers {
		t.Fatal("a peer")
	}
}
