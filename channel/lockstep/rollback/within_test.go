package rollback_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// diary is a game that notes the state before each frame, as it was simulated last.
type diary struct {
	sums
	before map[int64]uint64
	saved  bool // Save was called, and Advance wasn't yet
}

// Save is rollback's.
func (g *diary) Save(dst []byte) []byte {
	g.saved = true
	return g.sums.Save(dst)
}

// Advance is rollback's.
func (g *diary) Advance(frame int64, inputs [][]byte) {
	g.before[frame], g.saved = g.hash, false
	g.sums.Advance(frame, inputs)
}

// TestDropWithinAnEvent: a game that drops a player as soon as it is told of a desync, amid a Step, simulates what its spectators do.
func TestDropWithinAnEvent(t *testing.T) {
	within := 0
	for seed := range uint64(10) {
		r := newParty(t, seed, 2, netsim.Settings{Loss: 30, Lag: 60 * time.Millisecond}, func(_ int, c *rollback.Config) { c.Delay = -1 })
		m, game := r.machines[0], &diary{before: map[int64]uint64{}}
		var err error
		m.Session, err = rollback.New(rollback.Config{Session: seed, Players: 2, Local: 0, InputSize: 2, Delay: 8, Event: func(e rollback.Event) {
			if e.Kind == rollback.Desynced {
				if game.saved {
					within++
				}
				require.NoError(t, m.Drop(e.Player))
			}
		}}, game)
		require.NoError(t, err)
		m.held = make([]byte, 2)
		require.NoError(t, m.Connect(1, r.wires[[2]int{0, 1}]))
		var up, down sink
		require.NoError(t, m.Connect(2, &down))
		seen := &sums{}
		w, err := rollback.NewWatcher(rollback.Config{Session: seed, Players: 2, InputSize: 2}, 2, 0, seen, &up)
		require.NoError(t, err)
		r.machines[1].game.wrongAt = 100
		watched := map[int64]uint64{}
		for range 60 * 4 {
			r.run(16 * time.Millisecond)
			if w.Tick(r.now); up.p != nil {
				_ = m.Receive(r.now, 2, up.p)
			}
			if down.p != nil {
				require.NoError(t, w.Receive(r.now, down.p))
			}
			for w.Step() {
				watched[w.Frame()] = seen.hash
			}
		}
		require.EqualValues(t, 1, m.Active())
		require.Greater(t, w.Frame(), int64(150))
		for f := range w.Frame() {
			if f > 0 {
				require.Equal(t, watched[f], game.before[f], "seed %d, frame %d", seed, f)
			}
		}
	}
	require.Positive(t, within, "none was told within Step")
}

// small is a Transport of small packets.
type small struct{ sink }

// MaxPacket is rollback's.
func (*small) MaxPacket() int { return 255 }

// TestConnectTooSmall: a Transport whose packets can't hold the inputs of a frame is an error, not a spectator that never gets anything.
func TestConnectTooSmall(t *testing.T) {
	s, err := rollback.New(rollback.Config{Players: 8, InputSize: 32}, &sums{})
	require.NoError(t, err)
	require.NoError(t, s.Connect(1, &small{}))
	require.ErrorIs(t, s.Connect(8, &small{}), rollback.ErrConfig)
	require.NoError(t, s.Connect(8, &sink{}))
}

// TestLiarsAreSurvived: whatever a player says that can be parsed, nothing panics, and once it is dropped the others go on alike.
func TestLiarsAreSurvived(t *testing.T) {
	for seed := range uint64(20) {
		r := newParty(t, seed, 3, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
		rng := rand.New(rand.NewPCG(seed, 3))
		r.run(time.Second)
		r.machines[2].gone = true
		for range 400 {
			r.run(4 * time.Millisecond)
			for p := range 2 {
				m := r.machines[p]
				_ = m.Receive(r.now, 2, rollback.Lie(m.Session, 2, rng))
			}
		}
		for p := range 2 {
			_ = r.machines[p].Drop(2)
		}
		r.run(10 * time.Second)
		for p := range 2 {
			if m := r.machines[p]; m.err == nil {
				require.Greater(t, m.Frame(), int64(60*5), "seed %d: %b", seed, m.Waiting())
			}
		}
	}
}
