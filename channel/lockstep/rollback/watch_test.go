package rollback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSpectatorOfADroppedPlayer: a spectator whose player is out gets all that was final there, SpectatorDelay or not, and is told.
func TestSpectatorOfADroppedPlayer(t *testing.T) {
	for _, delay := range []int{0, 100} {
		r := newParty(t, 1, 3, netsim.Settings{Lag: 20 * time.Millisecond}, func(_ int, c *rollback.Config) { c.SpectatorDelay = delay })
		var up, down sink
		game := &sums{}
		w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: 3, InputSize: 2}, 3, 0, game, &up)
		require.NoError(t, err)
		m := r.machines[2]
		require.NoError(t, m.Connect(3, &down))
		run := func(d time.Duration) {
			for end := r.now + d; r.now < end; {
				w.Tick(r.now)
				require.NoError(t, m.Receive(r.now, 3, up.p))
				r.run(16 * time.Millisecond)
				if len(down.p) > 0 {
					require.NoError(t, w.Receive(r.now, down.p))
				}
				for w.Step() {
				}
			}
		}
		run(3 * time.Second)
		require.NoError(t, w.Err())
		require.Less(t, w.Frame(), m.Final()-int64(delay)+1)
		for p := range 2 {
			require.NoError(t, r.machines[p].Drop(2))
		}
		run(4 * time.Second)
		require.ErrorIs(t, m.err, rollback.ErrDropped)
		require.ErrorIs(t, w.Err(), rollback.ErrDropped, "delay %d", delay)
		require.Less(t, m.Final()-w.Frame(), int64(10), "delay %d", delay)
	}
}
