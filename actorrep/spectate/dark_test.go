package spectate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/spectate"
)

// TestSpectatorInTheDark: a spectator whom nothing reached for seconds, and one whose clock is slow, is soon as near to the game as the others are.
func TestSpectatorInTheDark(t *testing.T) {
	a := newArena(t, 1, path, spectate.RelayConfig{Delay: 3 * time.Second, Checkpoints: 4 * time.Second}, 2, nil)
	hosts := a.world.Hosts()
	hosts[2].Skew(-20_000)
	a.world.RunUntil(20 * time.Second)
	for range 3 {
		a.world.Cut(hosts[0], hosts[1])
		a.world.Cut(hosts[1], hosts[0])
		a.world.RunUntil(a.world.Now() + 5*time.Second)
		a.world.Join(hosts[0], hosts[1])
		a.world.Join(hosts[1], hosts[0])
		a.world.RunUntil(a.world.Now() + 5*time.Second)
	}
	a.world.RunUntil(5 * time.Minute)
	for i, s := range a.spectators {
		require.NoError(t, s.err)
		require.Nil(t, s.result)
		require.LessOrEqual(t, a.world.Now()-time.Duration(s.clock.Count)*time.Second/60, a.cfg.Delay+4*time.Second, "spectator %d", i)
	}
}
