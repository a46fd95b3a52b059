package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestPacketsForCopiesLeaveTheGameItsRate: packets that leave for the sake of copies only take no more of a low rate than the copies may.
func TestPacketsForCopiesLeaveTheGameItsRate(t *testing.T) {
	for _, c := range []struct {
		speed, events int
		tick          time.Duration
	}{{3000, 30, 5 * time.Millisecond}, {3000, 5, 16 * time.Millisecond}, {5000, 30, 16 * time.Millisecond}, {5000, 10, 16 * time.Millisecond}} {
		sent := [2]int{}
		for i, copies := range []int{0, 2} {
			l := newLab(t, both(netsim.Settings{Lag: 50 * time.Millisecond, Loss: 2}), 1, func(_ int, cfg *Config) { cfg.Redundancy.Copies, cfg.NetSpeed = copies, c.speed })
			l.tick = c.tick
			l.control()
			events, state := l.open(0), l.open(0)
			_, err := state.SendBunch(&bunch.Out{Reliable: true})
			require.NoError(t, err)
			l.run(3*time.Second, nil)
			event := l.now
			l.run(20*time.Second, func() {
				for ; l.now >= event; event += time.Second / time.Duration(c.events) {
					_, err := events.SendBunch(&bunch.Out{Data: make([]byte, 24), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
				for l.conns[0].IsNetReady() {
					_, err := state.SendBunch(&bunch.Out{Data: make([]byte, 100), NoMerge: true})
					require.NoError(t, err)
					sent[i]++
				}
			})
		}
		t.Logf("%+v: %d unreliable bunches without copies, %d with", c, sent[0], sent[1])
		require.Greater(t, sent[1], sent[0]*7/10, "%+v: %d without copies", c, sent[0])
	}
}
