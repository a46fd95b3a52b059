package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTooFarIsToldOnce: a player whose path is longer than the delay may hide is dropped once, and joins again when its path is short enough; until then the game
// goes at its pace.
func TestTooFarIsToldOnce(t *testing.T) {
	for _, policy := range []StallPolicy{Wait, Substitute} {
		cfg := config(2)
		cfg.Stall, cfg.DropAfter = policy, 3*time.Second
		w := newWorld(t, 5, cfg, netsim.Settings{Lag: 20 * ms, Jitter: 5 * ms})
		p := w.players[1]
		path := func(lag time.Duration) {
			for i, l := range []**netsim.Link{&p.up, &p.down} {
				var err error
				*l, err = netsim.NewLink(netsim.Settings{Lag: lag, Jitter: 10 * ms}, uint64(i))
				require.NoError(t, err)
			}
		}
		path(250 * ms)
		w.start()
		w.until("drop", time.Minute, func() bool { return w.host.Stats().Drops == 1 })
		for _, again := range []bool{false, true} { // a new session is as far
			if again {
				w.connect(1, p.peer.Turn())
			}
			from := w.host.Turn()
			w.run(10 * time.Second)
			require.Greater(t, w.host.Turn(), from+9*20, "%v", policy)
			require.EqualValues(t, 1, w.host.Stats().Drops, "%v: %v", policy, w.events)
			require.InDelta(t, w.host.Turn(), p.peer.Turn(), 10, "%v: it looks on", policy)
		}
		path(30 * ms)
		w.connect(1, p.peer.Turn())
		w.until("join", 15*time.Second, func() bool { return p.peer.InGame() })
		before := w.host.Stats().Substituted
		w.run(5 * time.Second)
		require.EqualValues(t, 1, w.host.Stats().Drops, "%v: %v", policy, w.events)
		require.InDelta(t, before, w.host.Stats().Substituted, 10, "%v", policy)
	}
}

// TestAllTooFar: where all are too far nobody is kept out for it, and in the end they play.
func TestAllTooFar(t *testing.T) {
	if testing.Short() {
		t.Skip("a game of a minute")
	}
	cfg := config(3)
	cfg.Stall = Substitute
	w := newWorld(t, 5, cfg, netsim.Settings{Lag: 500 * ms, Jitter: 10 * ms})
	w.start()
	w.until("commands", 3*time.Minute, func() bool { return w.commands > 1000 && w.host.Active() == 0b111 })
}
