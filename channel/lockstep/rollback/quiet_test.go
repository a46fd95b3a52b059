package rollback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// counter is a Transport that counts.
type counter struct{ packets, bytes int }

// Send is lockstep's.
func (c *counter) Send(_ time.Duration, p []byte) error {
	c.packets++
	c.bytes += len(p)
	return nil
}

// TestGoneOnesGetLittle: a player and a spectator that aren't heard any more get a packet a second, and all again once they are.
func TestGoneOnesGetLittle(t *testing.T) {
	for _, dropAfter := range []time.Duration{0, -1} {
		r := newParty(t, 1, 3, netsim.Settings{Lag: 20 * time.Millisecond}, func(_ int, c *rollback.Config) { c.DropAfter = dropAfter })
		r.run(time.Second)
		m := r.machines[0]
		var up sink
		var watching, player counter
		w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: 3, InputSize: 2}, 10, 0, &sums{}, &up)
		require.NoError(t, err)
		require.NoError(t, m.Connect(10, &watching))
		require.NoError(t, m.Connect(2, &player))
		ask := func() {
			w.Tick(r.now)
			require.NoError(t, m.Receive(r.now, 10, up.p))
		}
		ask()
		r.machines[2].gone = true
		r.run(6 * time.Second)
		require.Greater(t, watching.packets, 200)
		watching, player = counter{}, counter{}
		r.run(60 * time.Second)
		require.InDelta(t, 60, watching.packets, 2)
		require.InDelta(t, 60, player.packets, 2)
		watching = counter{}
		ask()
		r.run(time.Second)
		require.Greater(t, watching.packets, 50)
	}
}
