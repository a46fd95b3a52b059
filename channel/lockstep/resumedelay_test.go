package lockstep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

// TestResumedDelay: a host that takes up a game whose delay isn't InitialDelay and its player go on with the game's: all that the player submits is executed, and the game doesn't stand.
func TestResumedDelay(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		for _, delay := range []int{1, 2, 6, 12} {
			cfg := lockstep.HostConfig{Config: lockstep.Config{Players: 1}, Secret: [32]byte{1}, Resume: &lockstep.Resume{Turn: 10, Delay: delay, Active: 1, State: []byte("state")}}
			if fixed {
				cfg.Delay = lockstep.FixedDelay(delay)
			}
			host, err := lockstep.NewHost(cfg, nil)
			require.NoError(t, err)
			var up, down queue
			require.NoError(t, host.Connect(0, &down))
			peer, err := lockstep.NewPeer(lockstep.PeerConfig{Config: cfg.Config, Session: 1}, &up)
			require.NoError(t, err)
			now, submitted, executed := time.Duration(0), 0, 0
			host.Start(0)
			for tick := range 400 {
				now += 50 * time.Millisecond
				peer.TakeSnapshot()
				for turn, ok := peer.Next(); ok; turn, ok = peer.Next() {
					for range turn.Commands() {
						executed++
					}
					if peer.InGame() && tick < 360 && peer.Submit([]byte{1}) == nil {
						submitted++
					}
					if host.Turn() == turn.N+1 {
						require.Equal(t, host.Delay(), peer.Delay(), "turn %d", turn.N)
					}
					require.NoError(t, peer.Done(uint64(turn.N)))
				}
				peer.Tick(now)
				host.Tick(now)
				for range 3 {
					up.drain(func(p []byte) error { return host.Receive(now, 0, p) })
					down.drain(func(p []byte) error { return peer.Receive(now, p) })
				}
			}
			require.Greater(t, submitted, 100)
			require.Equal(t, submitted, executed, "delay %d", delay)
		}
	}
}
