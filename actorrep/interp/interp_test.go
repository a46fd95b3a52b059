package interp_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSeldomUpdates: with a MaxDelay of two intervals at least, actors that are sent once or twice a second are drawn evenly too.
func TestSeldomUpdates(t *testing.T) {
	for _, loss := range []float64{0, 5} {
		for _, hz := range []float64{1, 2} {
			net := netsim.Settings{Lag: 100 * time.Millisecond, LagVariance: 25 * time.Millisecond, Loss: loss}
			s := newStage(t, 1, net, interp.Config{MaxDelay: 2 * time.Second}, actorrep.UpdateFrequency(hz))
			s.move = circle
			s.spawn(5)
			v := s.viewers[0]
			s.run(20 * time.Second)
			v.draw = func(_ time.Duration, v *viewer) { v.each(func(_, _ *walker) {}) }
			before := v.in.Counters
			s.run(60 * time.Second)
			c := v.in.Counters
			require.Greater(t, c.Samples-before.Samples, uint64(50*5*hz))
			require.Less(t, 100*float64(c.Late-before.Late)/float64(c.Draws-before.Draws), 0.5, "%v Hz, %v %% loss", hz, loss)
		}
	}
}

// TestDrawnEvenly: what is drawn is where the actor was at the time that is shown, and hardly ever waits for a sample: also at 10 % loss,
// with jitter, and with an UpdateFrequency below the tick.
func TestDrawnEvenly(t *testing.T) {
	for _, net := range []netsim.Settings{{}, {Loss: 10}, {Lag: 50 * time.Millisecond, LagVariance: 25 * time.Millisecond},
		{Lag: 100 * time.Millisecond, LagVariance: 25 * time.Millisecond, Loss: 2}, {Lag: 100 * time.Millisecond, LagVariance: 25 * time.Millisecond, Loss: 5},
		{Lag: 100 * time.Millisecond, LagVariance: 25 * time.Millisecond, Loss: 10}} {
		for _, hz := range []float64{60, 20, 10} {
			s := newStage(t, 3, net, interp.Config{}, actorrep.UpdateFrequency(hz))
			s.move = circle
			s.spawn(5)
			v := s.viewers[0]
			s.run(6 * time.Second)
			worst, sum, n := 0.0, 0.0, 0
			index := map[*walker]int{}
			last := map[*walker]time.Duration{}
			v.draw = func(now time.Duration, v *viewer) {
				v.each(func(w, drawn *walker) {
					at, ok := v.class.Time(w)
					require.True(t, ok)
					require.GreaterOrEqual(t, at, last[w])
					around, ok := v.class.Shown()
					require.True(t, ok)
					require.InDelta(t, at.Seconds(), around.Seconds(), 0.1)
					last[w] = at
					i, known := index[w]
					if !known {
						for j, a := range s.actors {
							if a.GUID() == w.GUID() {
								i = j
							}
						}
						index[w] = i
					}
					var want walker
					circle(i, &want, at)
					off := want.Pos.to(drawn.Pos)
					worst = max(worst, off)
					sum += float64(now - at)
					n++
				})
			}
			before := v.in.Counters
			s.run(60 * time.Second)
			c := v.in.Counters
			share := 100 * float64(c.Late-before.Late) / float64(c.Draws-before.Draws)
			t.Logf("%v%% loss, %v ± %v, %2.0f Hz: %.2f%% late, behind %v on average, reach %.1f, off %.3f m at most; %d rests", net.Loss, net.Lag, net.LagVariance, hz, share,
				time.Duration(sum/float64(n)).Round(time.Millisecond), v.in.Reach(), worst, c.Rests-before.Rests)
			require.Less(t, share, 0.5)
		}
	}
}

// TestRestsAreNotCrawled: an actor that rests and then goes is drawn at rest until then, although nothing was sent meanwhile; with others
// that move all the time and without.
func TestRestsAreNotCrawled(t *testing.T) {
	for _, net := range []netsim.Settings{{}, {Lag: 100 * time.Millisecond, LagVariance: 25 * time.Millisecond, Loss: 10}} {
		for _, others := range []int{0, 3} {
			for _, hz := range []float64{60, 10, 5} {
				s := newStage(t, 5, net, interp.Config{})
				period := 3 * time.Second
				s.move = func(i int, w *walker, now time.Duration) {
					if i > 0 {
						circle(i, w, now)
						return
					}
					w.Pos = vec{X: goAndRest(now, period)} // a second at 4 m/s, two at rest
				}
				s.spawn(1 + others)
				require.NoError(t, s.actors[0].SetUpdateFrequency(hz))
				s.run(10 * time.Second)
				v := s.viewers[0]
				crawl, resting, worst := 0, 0, 0.0
				v.draw = func(now time.Duration, v *viewer) {
					v.each(func(w, drawn *walker) {
						if w.GUID() != s.actors[0].GUID() {
							return
						}
						at, _ := v.class.Time(w)
						off := math.Abs(drawn.Pos.X - goAndRest(at, period))
						worst = max(worst, off)
						// Where it came to rest is known a round trip later when the last packet is lost.
						if in := at % period; in > 1500*time.Millisecond && in < period-150*time.Millisecond {
							resting++
							if off > 0.01 {
								crawl++
							}
						}
					})
				}
				s.run(60 * time.Second)
				t.Logf("%v%% loss, %d others, %2.0f Hz: %d of %d draws at rest were off; %.2f m at most; %+v", net.Loss, others, hz, crawl, resting, worst, v.in.Counters)
				require.Greater(t, resting, 1500)
				require.Less(t, crawl, resting/100)
			}
		}
	}
}

// goAndRest is a second of 4 m/s, then rest, and so on.
func goAndRest(now, period time.Duration) float64 {
	return 4*float64(now/period) + min(4*(now%period).Seconds(), 4)
}
