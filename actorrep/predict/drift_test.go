package predict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestShorterPathIsNoDrift: where a path becomes shorter, no input comes too late in the minute after: that is not taken for a clock that runs slow.
func TestShorterPathIsNoDrift(t *testing.T) {
	for _, rate := range []float64{20, 60} {
		for _, lags := range [][2]time.Duration{{150 * time.Millisecond, 20 * time.Millisecond}, {250 * time.Millisecond, 150 * time.Millisecond}} {
			s := newCourseOf(t, 1, netsim.Settings{Lag: lags[0], LagVariance: 5 * time.Millisecond}, config{Rate: rate})
			s.run(20 * time.Second)
			set := netsim.Settings{Lag: lags[1], LagVariance: 5 * time.Millisecond}
			require.NoError(t, s.line.Up.Set(set))
			require.NoError(t, s.line.Down.Set(set))
			s.run(5 * time.Second)
			missed, _ := s.figures(40 * time.Second)
			require.Less(t, missed, 0.5, "rate %v, %v to %v", rate, lags[0], lags[1])
		}
	}
}

// TestSlightlyWrongClocks: a client whose clock is 0.2 to 0.45 % slow is in step as one whose clock is 1 % wrong, and after 20 s in the dark too.
func TestSlightlyWrongClocks(t *testing.T) {
	for _, rate := range []float64{30, 60} {
		for _, slow := range []float64{0.002, 0.003, 0.0045} {
			set := netsim.Settings{Lag: 100 * time.Millisecond, LagVariance: 10 * time.Millisecond}
			s := newCourseOf(t, 1, set, config{Rate: rate})
			s.clock = 1 - slow
			s.run(40 * time.Second)
			missed, _ := s.figures(60 * time.Second)
			require.Less(t, missed, 0.5, "rate %v, %v slow", rate, slow)
			black := netsim.Settings{Loss: 100}
			require.NoError(t, s.line.Up.Set(black))
			require.NoError(t, s.line.Down.Set(black))
			s.run(20 * time.Second)
			require.NoError(t, s.line.Up.Set(set))
			require.NoError(t, s.line.Down.Set(set))
			s.run(time.Second)
			missed, _ = s.figures(5 * time.Second)
			require.Less(t, missed, 1.5, "rate %v, %v slow, after the dark", rate, slow)
		}
	}
}

// TestQueueIsNoDrift: where a queue of the path fills and drains again and again, that isn't taken for a clock that runs wrong.
func TestQueueIsNoDrift(t *testing.T) {
	const lag, queue = 30 * time.Millisecond, 120 * time.Millisecond
	for _, rate := range []float64{20, 60} {
		for _, period := range []time.Duration{12 * time.Second, 18 * time.Second, 24 * time.Second} {
			for _, drains := range []bool{false, true} {
				s := newCourseOf(t, 1, netsim.Settings{Lag: lag}, config{Rate: rate})
				play := func(d time.Duration) {
					for end := s.Now + d; s.Now < end; s.run(50 * time.Millisecond) {
						full := float64(s.Now%period) / float64(period)
						if drains {
							full = 1 - full
						}
						require.NoError(t, s.line.Up.Set(netsim.Settings{Lag: lag + time.Duration(full*float64(queue)), LagVariance: 3 * time.Millisecond}))
					}
				}
				play(40 * time.Second)
				before := s.server.Counters().Server
				play(90 * time.Second)
				after := s.server.Counters().Server
				moves, missed := after.Moves-before.Moves, after.Missed-before.Missed
				require.Less(t, 100*float64(missed), float64(moves+missed), "rate %v, period %v, drains %v: of %d inputs %d were missed", rate, period, drains, moves+missed, missed)
				require.Less(t, (after.Waited-before.Waited)/moves, uint64(100_000), "rate %v, period %v, drains %v: they wait so many microseconds", rate, period, drains)
			}
		}
	}
}
