package congestion

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// sends is a game with so many bytes a second, and so many more at once each second.
type sends struct{ hz, rate, burst int }

// flow is one of it over a link; what is lost is sent again.
func (s sends) flow(t testing.TB, seed uint64, link *paths.Link) (*paths.Flow, *paths.Run) {
	tick := time.Second / time.Duration(s.hz)
	f := &paths.Flow{Controller: adaptive(t), Tick: tick, AckEvery: tick, Jitter: time.Millisecond, Resend: true}
	ticks := 0
	f.Offer = func(time.Duration) int {
		if ticks++; ticks%s.hz == 0 {
			return s.rate/s.hz + s.burst
		}
		return s.rate / s.hz
	}
	return f, paths.New(seed, link, f)
}

// TestLossHoldsUpNoSmallSender: random loss on a path that isn't full doesn't hold up who uses less than the rate: what such an application gets
// delivered says nothing of the path, and its few packets and acks make no queue of a lost ack.
func TestLossHoldsUpNoSmallSender(t *testing.T) {
	const from = 5 * time.Second // the rate is found out until then
	longest := map[float64]time.Duration{}
	runs, late := 0, 0
	for _, s := range []sends{{20, 2000, 21_000}, {20, 20_000, 21_000}, {30, 20_000, 0}, {30, 2000, 21_000}, {60, 60_000, 21_000}, {60, 200_000, 0}} {
		for _, loss := range []float64{0.05, 0.1, 0.2} {
			for _, rtt := range []time.Duration{20, 100} {
				for _, jitter := range []time.Duration{0, 10} {
					for seed := uint64(1); seed <= seeds; seed++ {
						link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: rtt * time.Millisecond / 2,
							Jitter: jitter * time.Millisecond, Loss: loss, AckLoss: loss}
						f, w := s.flow(t, seed, link)
						w.Run(25 * time.Second)
						wait := time.Duration(0)
						for _, o := range f.Offers() {
							if o.At >= from {
								wait = max(wait, o.Wait)
							}
						}
						what := fmt.Sprintf("%+v, %g %% lost, RTT %d ± %d ms, seed %d", s, 100*loss, rtt, 2*jitter, seed)
						if jitter == 0 {
							longest[loss] = max(longest[loss], wait)
							require.Less(t, wait, 300*time.Millisecond, what)
							continue
						}
						runs++
						if wait > 600*time.Millisecond {
							t.Log(what, wait)
							late++
						}
					}
				}
			}
		}
	}
	t.Logf("the longest wait by loss: %v; with jitter %d of %d runs had a longer one than 600 ms", longest, late, runs)
	require.LessOrEqual(t, late, runs/20)
}

// TestSmallSenderGivesWay: who uses less than the rate, but more than the link has, is no cause of a long queue.
func TestSmallSenderGivesWay(t *testing.T) {
	const falls, rises = 15 * time.Second, 30 * time.Second
	link := func(now time.Duration) float64 {
		if now >= falls && now < rises {
			return 1e6
		}
		return 10e6
	}
	for _, s := range []sends{{20, 200_000, 0}, {60, 200_000, 0}} {
		for _, buffer := range []time.Duration{200, 1000} {
			for _, loss := range []float64{0, 0.1} {
				for seed := uint64(1); seed <= seeds; seed++ {
					l := &paths.Link{Rate: link, Buffer: buffer * time.Millisecond, Delay: 25 * time.Millisecond, Loss: loss, AckLoss: loss}
					f, w := s.flow(t, seed, l)
					w.Run(rises)
					what := fmt.Sprintf("%+v, buffer %d ms, %g %% lost, seed %d", s, buffer, 100*loss, seed)
					require.Less(t, l.Queue(.5, falls+5*time.Second, rises), 100*time.Millisecond, what)
					require.Greater(t, f.Delivered(falls+5*time.Second, rises), 0.8e6*(1-loss), what)
				}
			}
		}
	}
}

// TestBurstsFillNoQueue: who sends in bursts of a second's worth gives way where the link falls to less than that, though what comes between the bursts has
// the link for itself.
func TestBurstsFillNoQueue(t *testing.T) {
	const falls, end = 15 * time.Second, 45 * time.Second
	for _, s := range []sends{{20, 2000, 21_000}, {20, 10_000, 21_000}, {20, 20_000, 21_000}, {20, 60_000, 21_000}, {20, 200_000, 0}, {60, 20_000, 21_000}} {
		for _, buffer := range []time.Duration{time.Second, 2 * time.Second} {
			longest := time.Duration(0)
			for seed := uint64(1); seed <= 2*seeds; seed++ {
				l := &paths.Link{Rate: func(now time.Duration) float64 {
					if now >= falls {
						return 256e3
					}
					return 10e6
				}, Buffer: buffer, Delay: 25 * time.Millisecond}
				f, w := s.flow(t, seed, l)
				w.Run(end)
				what := fmt.Sprintf("%+v, buffer %v, seed %d", s, buffer, seed)
				queue := l.Queue(.95, falls+5*time.Second, end)
				longest = max(longest, queue)
				require.Less(t, queue, 600*time.Millisecond, what)
				asked := min(float64(s.rate+s.burst)*8, 256e3)
				require.Greater(t, f.Delivered(falls+5*time.Second, end), 0.8*asked, what)
			}
			t.Logf("%+v, buffer %v: 95 %% of packets waited for less than %v", s, buffer, longest)
		}
	}
}
