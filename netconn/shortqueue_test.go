package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestShortQueueIsNoLossOfThePath: where the queue of a narrow link is too short to be measured beside a game's ticks, loss is the only sign of congestion.
// The adaptive controller doesn't take that for the path's own in the long run, and doesn't go on sending twice what the link carries.
func TestShortQueueIsNoLossOfThePath(t *testing.T) {
	sum, n := 0.0, 0
	for _, rate := range []float64{30_000, 100_000} {
		for _, queue := range []time.Duration{30 * time.Millisecond, 60 * time.Millisecond} {
			for _, jitter := range []time.Duration{0, 20 * time.Millisecond} {
				for _, unreliable := range []int{0, 300} {
					nets := [2]netsim.Settings{{Lag: 60 * time.Millisecond, Bandwidth: 8 * rate, QueueDelay: queue}, {Lag: 60 * time.Millisecond, LagVariance: jitter}}
					l := newLab(t, nets, 1, func(_ int, c *Config) { c.Controller = adapt() })
					l.join()
					ch := l.open(0)
					game := func() {
						for i := 0; i < 20 && ch.NumOutRec() < 100; i++ {
							_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, []int{25, 120, 820, 3020, 20_020}[i%5]), Reliable: true})
							require.NoError(t, err)
						}
						if unreliable > 0 && l.conns[0].IsNetReady() {
							_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, unreliable)})
						}
					}
					l.run(15*time.Second, game)
					c := l.links[0].Counters
					l.run(30*time.Second, game)
					pushed, passed := l.links[0].Counters.BytesPushed-c.BytesPushed, l.links[0].Counters.BytesPassed-c.BytesPassed
					offered, used := float64(pushed)/float64(passed), float64(passed)/30/rate
					t.Logf("%v kB/s, a queue of %v, jitter %v, %d B unreliable: %.2f bytes for one that passes, %.2f of the link", rate/1000, queue, jitter, unreliable, offered, used)
					require.Greater(t, used, 0.85)
					sum, n = sum+offered, n+1
				}
			}
		}
	}
	require.Less(t, sum/float64(n), 1.48)
}
