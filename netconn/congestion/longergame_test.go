package congestion

import (
	"math/rand/v2"
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

// TestQuietOnALongerPath: an application that says little, whose path becomes longer, and which has no end of data a moment later, uses the path within seconds.
func TestQuietOnALongerPath(t *testing.T) {
	for _, rate := range []float64{2.4e6, 8e6, 32e6} {
		for by := 15 * time.Millisecond; by <= 60*time.Millisecond; by += 5 * time.Millisecond {
			for seed := range uint64(4) {
				tick := time.Second / 60
				n := 0
				f := &paths.Flow{Controller: adaptive(t), Tick: tick, Jitter: time.Millisecond, AckEvery: tick, Offer: func(now time.Duration) int {
					switch n++; {
					case now >= 23*time.Second:
						return int(rate / 8 / 60 * 2)
					case n%6 == 0:
						return 80
					}
					return 0
				}}
				link := &paths.Link{Rate: paths.Constant(rate), Buffer: 300 * time.Millisecond, Delay: 12 * time.Millisecond, Detours: []paths.Detour{{Span: paths.Span{From: 20 * time.Second, To: paths.Never}, By: by}}}
				paths.New(seed, link, f).Run(35 * time.Second)
				require.Greater(t, f.Delivered(27*time.Second, 33*time.Second)/rate, 0.7, "%v bit/s, %v longer each way, seed %d", rate, by, seed)
			}
		}
	}
}

// TestQuietInTurn: flows that share a narrow link with a long queue, each of them quiet in turn, don't take the queue of the others for a longer path, which would
// make it longer and longer.
func TestQuietInTurn(t *testing.T) {
	const rate, from, to = 50_000 * 8, 15 * time.Second, 120 * time.Second
	sum := time.Duration(0)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		link := &paths.Link{Rate: paths.Constant(rate), Buffer: 4 * time.Second, Delay: 20 * time.Millisecond}
		var flows []*paths.Flow
		for range 6 {
			const hz = 60
			f := &paths.Flow{Controller: adaptive(t), Tick: time.Second / hz, AckEvery: time.Second / hz, Jitter: time.Millisecond}
			quiet, loud, n := time.Duration(2000+r.IntN(8000))*time.Millisecond, time.Duration(2000+r.IntN(10000))*time.Millisecond, 0
			f.Offer = func(now time.Duration) int {
				switch n++; {
				case now%(quiet+loud) >= quiet:
					return int(f.Controller.Rate() / hz * 1.3)
				case n%6 == 0:
					return 100
				}
				return 0
			}
			flows = append(flows, f)
		}
		paths.New(seed, link, flows...).Run(to)
		sum += link.Queue(0.5, from, to)
	}
	t.Logf("median queue: %v", sum/seeds)
	require.Less(t, sum/seeds, 250*time.Millisecond)
}
