package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// away has player 1 of three go dark until it is dropped, and for a while longer.
func away(t *testing.T, seed uint64, cfg HostConfig, longer time.Duration) *world {
	w := newWorld(t, seed, cfg, netsim.Settings{LagMin: 60 * ms, LagMax: 65 * ms})
	w.start()
	w.playTo(60, time.Minute)
	w.players[1].offline = true
	w.until("dropped", time.Minute, func() bool { return w.host.Active() == 0b101 })
	end := w.now + longer
	w.until("and longer", time.Minute, func() bool { return w.now >= end })
	return w
}

// TestComesBackInTime: who comes back to the game has executed all that it has, so its first commands come in time, however long the delay is.
func TestComesBackInTime(t *testing.T) {
	for seed := range uint64(10) {
		cfg := config(3)
		cfg.Stall, cfg.DropAfter, cfg.StallAfter, cfg.RejoinAfter = Substitute, time.Second, 20*ms, 100*ms
		cfg.InitialDelay, cfg.Delay = 8, FixedDelay(8)
		w := away(t, seed, cfg, 2*time.Second)
		w.players[1].offline = false
		w.until("rejoin", time.Minute, func() bool { return w.players[1].peer.InGame() })
		before := w.host.Stats().Substituted
		w.playTo(w.host.Turn()+100, time.Minute)
		require.Equal(t, before, w.host.Stats().Substituted, "seed %d: it holds nobody", seed)
		require.EqualValues(t, 0b111, w.host.Active(), "seed %d", seed)
	}
}

// TestTimeOutOfTheGame: who is out of the game holds nobody, and gets back as much for that as in it, by Substitute.
func TestTimeOutOfTheGame(t *testing.T) {
	cfg := config(3)
	cfg.DropAfter, cfg.StallPercent = 2*time.Second, 20
	for longer, left := range map[time.Duration]time.Duration{2 * time.Second: 1300 * ms, 20 * time.Second: 0} {
		cfg.Stall = Substitute
		w := away(t, 1, cfg, longer)
		w.players[1].offline = false
		w.until("rejoin", time.Minute, func() bool { return w.host.Active() == 0b111 })
		require.InDelta(t, left, w.host.clients[1].stall.debt, float64(200*ms), "after %v", longer)

		cfg.Stall = Wait
		w = away(t, 1, cfg, longer)
		before := w.host.clients[1].stall.debt
		w.players[1].offline = false
		w.until("rejoin", time.Minute, func() bool { return w.host.Active() == 0b111 })
		require.Equal(t, before, w.host.clients[1].stall.debt)
	}
}
