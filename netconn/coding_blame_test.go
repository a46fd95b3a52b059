package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSymbolsThatFillThePath: where symbols are what overflows a queue too short to be measured, they stay away where much gets lost by it.
func TestSymbolsThatFillThePath(t *testing.T) {
	for _, c := range []struct {
		passes, loss float64
		queue        time.Duration
		adaptive     bool
	}{{50_000, 0, 20 * time.Millisecond, false}, {50_000, 3, 40 * time.Millisecond, true}, {20_000, 0, 20 * time.Millisecond, false}, {20_000, 10, 20 * time.Millisecond, true}} {
		way := netsim.Settings{Lag: 20 * time.Millisecond, Loss: c.loss}
		narrow := way
		narrow.Bandwidth, narrow.QueueDelay = 8*c.passes, c.queue
		l := newLab(t, [2]netsim.Settings{narrow, way}, 1, func(_ int, cfg *Config) {
			cfg.Coding, cfg.Controller = Coding{Repairs: 3, Adaptive: c.adaptive}, adapt()
		})
		l.tick, l.fine = 16*time.Millisecond, 2*time.Millisecond
		l.join()
		ch := l.open(0)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 16), Reliable: true})
		require.NoError(t, err)
		game := func() {
			for range 2 {
				if l.conns[0].IsNetReady() {
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, int(c.passes*0.006)), NoMerge: true})
					require.NoError(t, err)
				}
			}
		}
		l.run(20*time.Second, game)
		l.offered[0] = 0
		l.run(time.Minute, game)
		require.Nil(t, l.res[0])
		offered := float64(l.offered[0]) / 60 / c.passes
		t.Logf("%+v: %.2f times what passes", c, offered)
		require.Less(t, offered, 1.3, "%+v", c)
	}
}

// TestSymbolsForMuchLoss: where the path itself loses much, or all now and then, symbols leave as before; so they do where jitter has them repair packets that are only late.
func TestSymbolsForMuchLoss(t *testing.T) {
	for seed, c := range []struct {
		loss   float64
		every  int // so many seconds one is dark
		jitter time.Duration
	}{{loss: 30}, {loss: 50}, {loss: 3, every: 10}, {loss: 3, every: 4}, {loss: 5, jitter: 30 * time.Millisecond}} {
		l, game := talkingLab(t, uint64(seed), netsim.Settings{Lag: 30 * time.Millisecond, Loss: c.loss, Jitter: c.jitter}, func(_ int, cfg *Config) {
			cfg.Coding, cfg.ReorderWindow = Coding{Repairs: 1}, 0
		})
		l.lose[0] = func([]byte) bool { return c.every > 0 && int(l.now/time.Second)%c.every == 1 }
		l.run(time.Minute, game)
		n := l.conns[0].Counters
		t.Logf("%+v, seed %d: %.2f symbols a packet", c, seed, float64(n.Repairs)/float64(n.PacketsSent))
		require.Greater(t, float64(n.Repairs), 0.9*float64(n.PacketsSent), "%+v", c)
	}
}
