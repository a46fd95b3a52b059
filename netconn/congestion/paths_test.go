package congestion_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
		// The way becomes longer amid the drain of a queue, or while bursts hide it.
		"1 Mbit/s, 280 ms longer for 15 s, RTT 5 ms, 10 Hz":     {7},
		"1 Mbit/s, 80 ms longer for 15 s, RTT 5 ms, 20 Hz":      {13}, // the drain ends with little in flight
		"1 Mbit/s, 280 ms longer for 15 s, RTT 40 ms, 10 Hz":    {3},
		"1 Mbit/s, 280 ms longer for 15 s, RTT 150 ms, 10 Hz":   {3},
		"1 Mbit/s, 280 ms longer for 15 s, RTT 400 ms, 60 Hz":   {3, 4, 5},
		"10 Mbit/s, 80 ms longer for 15 s, RTT 5 ms, 20 Hz":     {9}, // what a drain left seems shorter for a while
		"10 Mbit/s, 80 ms longer for 15 s, RTT 400 ms, 20 Hz":   {2},
		"10 Mbit/s, 280 ms longer for 15 s, RTT 400 ms, 10 Hz":  {4, 5},
		"100 Mbit/s, 80 ms longer for 15 s, RTT 400 ms, 20 Hz":  {2},
		"100 Mbit/s, 280 ms longer for 15 s, RTT 400 ms, 20 Hz": {2},
	}
	for _, p := range paths.Table(true) {
		for _, seed := range runs[p.Name] {
			f := p.Run(seed, controller(t))
			assert.LessOrEqual(t, f.Recovery, 5*time.Second, "%s, seed %d", p.Name, seed)
		}
		delete(runs, p.Name)
	}
	require.Empty(t, runs, "not in the table")
}

// TestLongerWay: a round trip time that rises at once, as when a route changes, is no queue: what was known of the link before is found out to
// hold.
func TestLongerWay(t *testing.T) {
	const at = 15 * time.Second
	for _, hz := range []int{10, 20, 30, 60} {
		for _, longer := range []time.Duration{40, 80, 130, 280} {
			for _, mbit := range []float64{1, 10, 100} {
				p := paths.Path{RTT: 20 * time.Millisecond, Hz: hz, Length: 25 * time.Second, Events: []time.Duration{at}, Link: func() *paths.Link {
					return &paths.Link{Rate: paths.Constant(mbit * 1e6), Buffer: 200 * time.Millisecond, Delay: 10 * time.Millisecond,
						Detours: []paths.Detour{{Span: paths.Span{From: at, To: time.Minute}, By: longer * time.Millisecond / 2}}}
				}}
				f := p.Run(1, controller(t))
				require.LessOrEqual(t, f.Recovery, 5*time.Second, "%v longer, %g Mbit/s, %d Hz", longer*time.Millisecond, mbit, hz)
			}
		}
	}
}

// TestLateFlow: a flow that comes late gets its share of the link, whatever share its start has brought it.
func TestLateFlow(t *testing.T) {
	least := 1.0
	for seed := range uint64(12) {
		link := paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 20 * time.Millisecond}
		var flows []*paths.Flow
		for i := range 2 {
			flows = append(flows, &paths.Flow{Controller: controller(t)(), Tick: time.Second / 60, AckEvery: time.Second / 60, Jitter: time.Millisecond, Starts: time.Duration(i) * 10 * time.Second})
		}
		const from, to = 15 * time.Second, 75 * time.Second
		paths.New(seed, &link, flows...).Run(to)
		fair := paths.Fairness(flows[0].Delivered(from, to), flows[1].Delivered(from, to))
		require.Greater(t, fair, 0.9, "seed %d", seed)
		least = min(least, fair)
	}
	t.Logf("fairness index: %.3f and more", least)
}
