package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestChaos cuts networks, freezes games, restarts players with and without their state and
// takes snapshots, at random. States are compared at every turn by the world; in
// the end everything heals and all must be in the game again.
func TestChaos(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		chaos(t, seed)
	}
}

func chaos(t *testing.T, seed uint64) {
	players := 2 + int(seed%5)
	cfg := config(players)
	cfg.DropAfter = time.Duration(1+seed%3) * time.Second
	cfg.Stall = StallPolicy(seed / 2 % 2)
	overLink := seed%7 == 6
	if overLink {
		cfg.MaxPacket = 255
	}
	cfg.LogTurns = 400
	net := netsim.Settings{Loss: float64(seed%4) * 10, Dup: 10, Order: 20, LagMin: 5 * ms, LagMax: time.Duration(10+seed%100) * ms}
	if overLink {
		net.Loss = min(net.Loss, 10) // over package link more loss stalls for longer than DropAfter
	}
	w := newWorld(t, seed, cfg, net)
	w.overLink = overLink
	w.start()
	for range 40 {
		w.run(time.Duration(w.rng.IntN(1500)) * ms)
		if s := w.host.snapshots.newest(w.host.Turn()); s == nil || w.host.Turn() > s.turn+100 {
			w.snapshotNow() // or nobody might have the state of a turn in the log any more
		}
		w.disturb(w.players[w.rng.IntN(players)])
	}
	for _, p := range w.players {
		p.offline, p.frozen = false, false
		if p.peer.State() == Ended {
			w.connect(p.id, 0)
		}
		w.snapshotNow()
	}
	w.until("healing", 2*time.Minute, func() bool {
		for _, p := range w.players {
			if p.peer.State() == Ended { // what it needed had left the log
				w.connect(p.id, 0)
			}
		}
		w.snapshotNow()
		return w.host.Active() == w.cfg.mask()
	})
	w.playTo(w.host.Turn()+40, 2*time.Minute)
	require.Zero(t, w.host.Stats().Desyncs, "seed %d", seed)
	require.Greater(t, w.host.Stats().HashesCompared, uint64(100), "seed %d", seed)
}

func (w *world) disturb(p *player) {
	switch w.rng.IntN(6) {
	case 0:
		p.offline = !p.offline
	case 1:
		p.frozen = !p.frozen
	case 2:
		if p.peer.State() == Running {
			if _, ok := p.peer.Next(); !ok { // between turns
				w.connect(p.id, p.peer.Turn())
			}
		}
	case 3:
		w.connect(p.id, 0)
	case 4:
		w.snapshotNow()
	case 5:
		if w.rng.IntN(4) == 0 {
			require.NoError(w.t, w.host.Drop(w.now, p.id))
			w.connect(p.id, 0)
		}
	}
}

// snapshotNow gives the host the state of whoever is furthest.
func (w *world) snapshotNow() {
	best := w.players[0]
	for _, p := range w.players {
		if p.g.turn > best.g.turn {
			best = p
		}
	}
	if best.g.turn > 0 && w.host.log.holds(best.g.turn) {
		require.NoError(w.t, w.host.SetSnapshot(best.g.turn, best.g.save()))
	}
}
