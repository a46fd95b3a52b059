package predict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTicksOfAllLengths: with frames of a millisecond and of a second at either end, at each Rate, inputs go on coming.
func TestTicksOfAllLengths(t *testing.T) {
	for _, rate := range []float64{10, 60, 240} {
		for _, server := range []time.Duration{time.Millisecond, time.Second} {
			for _, client := range []time.Duration{time.Millisecond, time.Second} {
				if rate*server.Seconds() > 64 {
					continue // a server keeps the inputs of 64 ticks
				}
				s := newCourseOf(t, 1, netsim.Settings{Lag: 40 * time.Millisecond, LagVariance: 10 * time.Millisecond, Loss: 2}, config{Rate: rate, MaxCatchUp: 64})
				s.serverFrame, s.frame = server, client
				s.run(20 * time.Second)
				for range 5 {
					before := s.server.Counters().Server
					s.run(4 * time.Second)
					after := s.server.Counters().Server
					moves, missed := after.Moves-before.Moves, after.Missed-before.Missed
					t.Logf("Rate %v, server's frames %v, client's %v: %d moves, %d missed", rate, server, client, moves, missed)
					require.Greater(t, moves, uint64(0))
					if server+client == 2*time.Millisecond {
						require.LessOrEqual(t, missed, moves/50+1)
					}
				}
			}
		}
	}
}
