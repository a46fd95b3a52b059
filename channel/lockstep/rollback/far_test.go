package rollback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestMoreThanAPacketUnderWay: where the inputs of a round trip don't fit a packet, players play on at the pace of the game, and a spectator keeps up, though every input
// differs from the one before.
func TestMoreThanAPacketUnderWay(t *testing.T) {
	for _, c := range []struct {
		players, size, lag, loss int
	}{{2, 32, 150, 0}, {2, 32, 100, 5}, {4, 16, 120, 2}, {8, 8, 50, 5}} {
		far := netsim.Settings{Lag: time.Duration(c.lag) * time.Millisecond, Loss: float64(c.loss)}
		r := newParty(t, 1, c.players, far, func(_ int, cfg *rollback.Config) {
			cfg.InputSize, cfg.MaxRollback, cfg.Delay = c.size, 16, 8
		})
		var up, down wire
		for i, w := range []*wire{&up, &down} {
			var err error
			w.link, err = netsim.NewLink(far, uint64(7+i))
			require.NoError(t, err)
		}
		m := r.machines[0]
		require.NoError(t, m.Connect(c.players, &down))
		w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: c.players, InputSize: c.size}, c.players, 0, &sums{}, &up)
		require.NoError(t, err)
		const seconds = 10
		for r.now < seconds*time.Second {
			for _, m := range r.machines {
				for i := range m.held {
					m.held[i] = byte(m.rng.Uint32())
				}
			}
			r.run(16 * time.Millisecond)
			w.Tick(r.now)
			for p, ok := up.link.Pop(r.now); ok; p, ok = up.link.Pop(r.now) {
				require.NoError(t, m.Receive(r.now, c.players, p))
			}
			for p, ok := down.link.Pop(r.now); ok; p, ok = down.link.Pop(r.now) {
				require.NoError(t, w.Receive(r.now, p))
			}
			for w.Step() {
			}
		}
		require.Greater(t, m.Frame(), int64(60*seconds*9/10), "%+v: %+v", c, m.Stats())
		require.Less(t, m.Final()-w.Frame(), int64(60), "%+v", c)
	}
}
