package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// keptSnapshots is how many snapshots the host keeps, for itself and for its peers.
func keptSnapshots(h *Host) int {
	kept := map[*byte]bool{}
	for _, s := range h.snapshots.list {
		kept[&s.data[0]] = true
	}
	for p := range h.clients {
		if c := &h.clients[p]; c.snap != nil {
			kept[&c.snap[0]] = true
		}
	}
	return len(kept)
}

// TestSnapshotsAreLetGo: spectators that begin to load a snapshot each and ack nothing, or go away, have the host keep few of them, and whoever has loaded one none.
func TestSnapshotsAreLetGo(t *testing.T) {
	for _, delay := range []int{0, 20} {
		cfg := config(2)
		cfg.Spectators, cfg.SpectatorDelay = 40, delay
		tb := newTable(t, cfg)
		for range 12 {
			tb.exchange()
		}
		tb.host.Start(tb.now)
		tb.exchange()
		for i := range 40 {
			for range 25 {
				tb.turn(nil)
			}
			require.NoError(t, tb.host.SetSnapshot(tb.host.Turn(), make([]byte, 1000)))
			p := 2 + i
			require.NoError(t, tb.host.Connect(p, &box{}))
			proof := tb.host.proof(p, 1)
			_ = tb.host.Receive(tb.now, p, hello{agreement: tb.host.cfg.agreement(), proof: proof, maxSnapshot: 1 << 20}.append(envelope{typeHello, p, 1}.append(nil)))
			tb.host.clients[p].snap = tb.host.snapshots.list[0].data // as when it is shorter than the turns
			tb.host.clients[p].welcome.start = tb.host.snapshots.list[0].turn
			tb.host.clients[p].welcome.snapshot = 1000
			_ = tb.host.Receive(tb.now, p, craftIn(p, keyOf(proof)))
			require.LessOrEqual(t, keptSnapshots(tb.host), 5+maxOld+1)
		}
		require.Equal(t, len(tb.host.snapshots.list)+maxOld, keptSnapshots(tb.host))
	}
}

// TestSnapshotIsLetGoWhenLoaded: a host keeps nothing for a peer that has loaded its snapshot, and the peer plays on.
func TestSnapshotIsLetGoWhenLoaded(t *testing.T) {
	cfg := config(3)
	cfg.LogTurns = 100
	w := newWorld(t, 5, cfg, netsim.Settings{Lag: 20 * ms, Loss: 5})
	w.connect(0, 0)
	w.connect(1, 0)
	w.until("ready players", 20*time.Second, func() bool { return w.host.Ready() == 3 })
	w.host.Start(w.now)
	w.playTo(200, time.Minute)
	w.snapshotNow()
	w.connect(2, 0)
	w.until("a snapshot under way", 10*time.Second, func() bool { return w.host.clients[2].snap != nil })
	w.until("join", 20*time.Second, func() bool { return w.host.Active() == 7 })
	w.playTo(w.host.Turn()+60, time.Minute)
	require.Empty(t, w.host.clients[2].snap)
	require.Zero(t, w.host.Stats().Desyncs)
}

// TestSlowLoaderBeginsAnew: a peer whose snapshot is let go of while it loads it gets the newest one, and plays.
func TestSlowLoaderBeginsAnew(t *testing.T) {
	cfg := config(3)
	cfg.Spectators = 8
	cfg.LogTurns = 300
	w := newWorld(t, 6, cfg, netsim.Settings{Lag: 20 * ms})
	w.connect(0, 0)
	w.connect(1, 0)
	w.until("ready players", 20*time.Second, func() bool { return w.host.Ready() == 3 })
	w.host.Start(w.now)
	w.playTo(400, time.Minute)
	w.snapshotNow()
	w.connect(2, 0)
	w.until("a snapshot under way", 10*time.Second, func() bool { return w.host.clients[2].snap != nil })
	first := w.host.clients[2].welcome.start
	w.players[2].offline = true
	for i := 3; i < 11; i++ {
		w.playTo(w.host.Turn()+20, time.Minute)
		w.snapshotNow()
		w.connect(i, 0)
		w.until("a snapshot under way", 10*time.Second, func() bool { return w.host.clients[i].snap != nil })
		w.players[i].offline = true
	}
	require.LessOrEqual(t, keptSnapshots(w.host), 1+maxOld+1)
	require.Greater(t, w.host.clients[2].welcome.start, first)
	w.players[2].offline = false
	w.until("join", 20*time.Second, func() bool { return w.host.Active() == 7 })
	w.playTo(w.host.Turn()+60, time.Minute)
	require.Zero(t, w.host.Stats().Desyncs)
}
