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
