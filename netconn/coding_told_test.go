package netconn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestRepairsAreTold: the controller hears of nearly all packets that the path lost, also of those that one symbol repairs together and of those that are acked together.
func TestRepairsAreTold(t *testing.T) {
	l, game := talkingLab(t, 1, netsim.Settings{Lag: 30 * time.Millisecond, Loss: 40}, func(i int, cfg *Config) {
		cfg.Coding = Coding{Repairs: 3}
		if i == 1 {
			cfg.AckDelay = 100 * time.Millisecond
		}
	})
	l.run(time.Minute, func() {
		if l.now%(16*time.Millisecond) < l.tick {
			game()
		}
	})
	peer := l.conns[1].Counters
	repaired, told := peer.Repaired-peer.RepairedLate, l.conns[0].Counters.PacketsRepaired
	require.Greater(t, float64(told), 0.87*float64(repaired), "%d of %d", told, repaired)
}

// TestLateIsNotLost: a packet that comes after its repair is no loss for the sender. On a path that reorders packets it sees as many lost as are lost.
func TestLateIsNotLost(t *testing.T) {
	for _, percent := range []int{0, 10} {
		l, game := talkingLab(t, 1, netsim.Settings{Lag: 30 * time.Millisecond, LagVariance: 20 * time.Millisecond}, func(_ int, cfg *Config) { cfg.Coding = Coding{Repairs: 3, Adaptive: true} })
		l.fine, l.tick = time.Millisecond, 8*time.Millisecond
		rng, lost := rand.New(rand.NewPCG(1, 2)), 0
		l.lose[0] = func([]byte) bool {
			if rng.IntN(100) >= percent {
				return false
			}
			lost++
			return true
		}
		l.run(30*time.Second, game)
		sent, peer := l.conns[0].Counters, l.conns[1].Counters
		require.Greater(t, peer.Repaired, uint64(300))
		seen := float64(sent.PacketsLost + sent.PacketsRepaired)
		require.InDelta(t, lost, seen, 0.02*float64(sent.PacketsSent), "%d %%", percent)
	}
}
