package interp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestHeldIsUntouched: a player who hasn't loaded the level, and from whom its actors are kept, hits none of them.
func TestHeldIsUntouched(t *testing.T) {
	s := newStage(t, 2, netsim.Settings{Lag: 20 * time.Millisecond}, interp.Config{})
	s.move = circle
	s.spawn(1)
	s.run(time.Second)
	peer := s.viewers[0].line.Peer
	peer.Hold(func(actorrep.Actor) bool { return true })
	s.spawn(1)
	s.run(time.Second)
	see := func(i int) bool {
		view := s.in.Rewind(peer, s.viewers[0].in.Seen())
		_, pose := view.Pose(rewind.ID(s.actors[i].GUID()))
		return pose
	}
	require.True(t, see(0), "the client has it")
	require.False(t, see(1))
	peer.Release()
	s.run(time.Second)
	require.True(t, see(1))
}

// TestSpawnedAgain: an actor that the server destroys and spawns again within one tick, as from a pool, doesn't come from where it was.
func TestSpawnedAgain(t *testing.T) {
	s := newStage(t, 2, netsim.Settings{Lag: 20 * time.Millisecond}, interp.Config{})
	x := 0.0
	s.move = func(_ int, w *walker, now time.Duration) { x += 0.01; w.Pos = vec{x, 0} }
	s.spawn(1)
	s.run(time.Second)
	a := s.actors[0]
	require.NoError(t, s.Server.Destroy(a))
	x = 4 // too near to be a teleport
	a.Pos = vec{x, 0}
	require.NoError(t, s.Server.Spawn(a))
	least := 10.0
	v := s.viewers[0]
	v.draw = func(_ time.Duration, v *viewer) {
		var past walker
		if v.line.Peer.IsRelevant(a) && s.class.Pose(s.in.Rewind(v.line.Peer, v.in.Seen()), a, &past) {
			least = min(least, past.Pos.X)
		}
	}
	s.run(time.Second)
	require.Less(t, least, 10.0)
	require.GreaterOrEqual(t, least, 4.0)
}
