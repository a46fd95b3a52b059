package interp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTicksOfAllLengths: with Steps of a millisecond and of a second, frames of a millisecond and of a second, and every update frequency, what is drawn goes on all the
// time and isn't far behind, and Rewind shows what was drawn.
func TestTicksOfAllLengths(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, time.Second} {
		for _, frame := range []time.Duration{time.Millisecond, time.Second} {
			for _, hz := range []float64{0, 0.5, 10, 1000} {
				var options []actorrep.ClassOption
				longest := step
				if hz > 0 {
					options = append(options, actorrep.UpdateFrequency(hz))
					longest = max(step, time.Duration(float64(time.Second)/hz))
				}
				s := newStage(t, 1, netsim.Settings{Lag: 40 * time.Millisecond, LagVariance: 10 * time.Millisecond}, interp.Config{MaxRewind: 2 * time.Second, MaxDelay: 2 * time.Second}, options...)
				s.step, s.frame = step, frame
				s.move = func(_ int, w *walker, now time.Duration) { w.Pos.X = 0.3 * now.Seconds() }
				s.spawn(1)
				s.run(8 * time.Second)
				last, stood, worst := s.viewers[0].drawn.Pos.X, time.Duration(0), 0.0
				v := s.viewers[0]
				at := s.Now
				v.draw = func(now time.Duration, v *viewer) {
					v.each(func(w, drawn *walker) {
						if drawn.Pos.X != last {
							stood, at, last = max(stood, now-at), now, drawn.Pos.X
						}
						worst = max(worst, 0.3*now.Seconds()-last)
					})
				}
				s.run(8 * time.Second)
				drawn, seen := last, v.in.Seen()
				s.run(50 * time.Millisecond)
				var past walker
				there := s.class.Pose(s.in.Rewind(v.line.Peer, seen), s.actors[0], &past)
				t.Logf("Steps of %v, frames of %v, %v Hz: stood %v, %.2f s behind at most; drawn %.3f, rewound %v %.3f, clamped %d", step, frame, hz, stood, worst/0.3, drawn, there, past.Pos.X, s.in.Counters.Clamped)
				require.True(t, there)
				if step == time.Millisecond {
					require.InDelta(t, drawn, past.Pos.X, 0.01)
				}
				require.Less(t, stood, 2*longest+2*frame)
				require.Less(t, worst/0.3, (3*longest + 2*frame + 2*step + 300*time.Millisecond).Seconds())
			}
		}
	}
}
