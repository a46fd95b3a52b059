package congestion_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// TestAdaptiveOnEveryPath: the share of the link that is used, the queue, the time until the rate is found
// again after whatever has happened, and fairness. CI runs all round trip times with all ticks.
func TestAdaptiveOnEveryPath(t *testing.T) {
	for i, p := range paths.Table(os.Getenv("CI") != "") {
		if testing.Short() && i%4 > 0 {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			f := p.Run(1, controller(t))
			require.Empty(t, p.Missed(f), "%+v", f)
		})
	}
}

func controller(t testing.TB) func() paths.Controller {
	return func() paths.Controller {
		c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
		require.NoError(t, err)
		return c
	}
}

// TestRecoversWithOtherSeeds: the rate is found again within 5 s in runs whose chance is against it: a drain before, loss that comes in
// heaps.
func TestRecoversWithOtherSeeds(t *testing.T) {
	runs := map[string][]uint64{
		"loss of 10 %, RTT 400 ms, 60 Hz":           {5},
		"100 to 1 to 100 Mbit/s, RTT 400 ms, 10 Hz": {4, 5},
		"100 to 1 to 100 Mbit/s, RTT 400 ms, 20 Hz": {7},
		"1 to 100 to 1 Mbit/s, RTT 400 ms, 10 Hz":   {7, 12},
		"frozen for 1 s, RTT 400 ms, 10 Hz":         {1},
	}
	for _, p := range paths.Table(true) {
		for _, seed := range runs[p.Name] {
			f := p.Run(seed, controller(t))
			require.LessOrEqual(t, f.Recovery, 5*time.Second, "%s, seed %d", p.Name, seed)
		}
		delete(runs, p.Name)
	}
	require.Empty(t, runs, "not in the table")
}

// TestLongerWay: a round trip time that rises at once, as when a route changes, is no queue, and costs a few seconds.
func TestLongerWay(t *testing.T) {
	const at, end = 15 * time.Second, 25 * time.Second
	for _, hz := range []int{30, 60} {
		for _, rtt := range []time.Duration{60, 100, 150, 300} {
			for _, mbit := range []float64{1, 10} {
				for seed := range uint64(2) {
					l := paths.Link{Rate: paths.Constant(mbit * 1e6), Buffer: 200 * time.Millisecond, Delay: 10 * time.Millisecond}
					tick := time.Second / time.Duration(hz)
					f := &paths.Flow{Controller: controller(t)(), Tick: tick, AckEvery: tick, Jitter: time.Millisecond}
					w := paths.New(seed, &l, f)
					w.Run(at)
					l.Delay = rtt * time.Millisecond / 2
					w.Run(end)
					share := f.Delivered(at+7*time.Second, end) / (mbit * 1e6)
					require.Greater(t, share, 0.75, "RTT 20 to %d ms, %g Mbit/s, %d Hz, seed %d", rtt, mbit, hz, seed)
				}
			}
		}
	}
}
