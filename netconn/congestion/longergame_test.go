package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// TestLongerWayOfAGame: a game that has never used all of its rate has what it uses again soon after the round trip time rose at once.
func TestLongerWayOfAGame(t *testing.T) {
	const at = 20 * time.Second
	for _, rate := range []float64{4e6, 20e6} {
		for _, longer := range []time.Duration{80 * time.Millisecond, 280 * time.Millisecond} {
			for _, part := range []float64{0.2, 0.5} {
				most := time.Duration(0)
				for seed := range uint64(seeds) {
					link := &paths.Link{Rate: paths.Constant(rate), Buffer: 300 * time.Millisecond, Delay: 25 * time.Millisecond,
						Detours: []paths.Detour{{Span: paths.Span{From: at, To: time.Hour}, By: longer / 2}}}
					game := &paths.Flow{Controller: adaptive(t), Tick: time.Second / 60, AckEvery: time.Second / 60, Jitter: time.Millisecond}
					game.Offer = func(time.Duration) int { return int(rate / 8 * part / 60) }
					paths.New(seed+31, link, game).Run(at + 40*time.Second)
					for _, o := range game.Offers() {
						most = max(most, o.Wait)
					}
				}
				t.Logf("%v Mbit/s, %v longer, %v of the path: its queue waits for %v at most", rate/1e6, longer, part, most)
				require.Less(t, most, 3*time.Second)
			}
		}
	}
}
