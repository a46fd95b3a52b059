package rollback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestWhoLeavesIsNotWaitedFor: a player that leaves says so, and the others play on at once, whatever DropAfter is and whatever is lost; then nobody says anything
// to it. So it is before the first frame.
func TestWhoLeavesIsNotWaitedFor(t *testing.T) {
	for seed := range uint64(4) {
		players := 2 + int(seed%2)
		r := newParty(t, seed, players, netsim.Settings{Loss: 20, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}, func(_ int, c *rollback.Config) {
			c.DropAfter = []time.Duration{-1, time.Hour}[seed/2]
		})
		if seed%3 == 0 {
			r.run(time.Second)
		}
		leaver := r.machines[1]
		require.NoError(t, leaver.Drop(1))
		r.run(time.Second)
		require.ErrorIs(t, leaver.err, rollback.ErrDropped, "seed %d", seed)
		leaver.gone = true
		from := r.machines[0].Frame()
		var said counter
		require.NoError(t, r.machines[0].Connect(1, &said))
		r.run(time.Second)
		for i, m := range r.machines {
			if i != 1 {
				require.EqualValues(t, (1<<players-1)&^0b10, m.Active(), "seed %d", seed)
				require.Greater(t, m.Frame(), from+50, "seed %d: %d waits for %b", seed, i, m.Waiting())
			}
		}
		r.agree()
		require.Zero(t, said.packets, "seed %d", seed)
	}
}
