package netconn

import (
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
