package actorrep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestRelevantSpawns: an actor that Config.Relevant spawns while it is asked about a new one is checked in the next Step, however many pairs there are.
func TestRelevantSpawns(t *testing.T) {
	var f *fleet
	var late *rock
	spawns := false
	f = newFleet(t, 1, netsim.Settings{}, actorrep.Config{Relevant: func(_ *actorrep.Peer, a actorrep.Actor) bool {
		if spawns {
			spawns, late = false, &rock{}
			require.NoError(t, f.Server.Spawn(late))
		}
		return a == actorrep.Actor(late)
	}})
	l := f.join()
	f.Until(func(l *rig.Line) string {
		if !l.Peer.Ready() {
			return "not ready"
		}
		return ""
	})
	for range 9000 {
		require.NoError(t, f.Server.Spawn(&rock{}))
	}
	spawns = true
	f.Step()
	require.NotNil(t, late)
	require.False(t, l.Peer.IsRelevant(late))
	f.Step()
	require.True(t, l.Peer.IsRelevant(late))
}
