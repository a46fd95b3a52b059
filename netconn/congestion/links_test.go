package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

func adaptive(t testing.TB) *Adaptive {
	c, err := NewAdaptive(AdaptiveConfig{})
	require.NoError(t, err)
	return c
}

// styles are the ways in which games send and peers ack.
var styles = []struct {
	name string
	flow paths.Flow
}{
	{"events", paths.Flow{Tick: 5 * time.Millisecond, Immediate: true}},
	{"60Hz", paths.Flow{Tick: time.Second / 60, AckEvery: time.Second / 60, Jitter: time.Millisecond}},
	{"30Hz", paths.Flow{Tick: time.Second / 30, AckEvery: time.Second / 30, Jitter: time.Millisecond}},
	{"60Hz, acks every 200 ms", paths.Flow{Tick: time.Second / 60, AckEvery: 200 * time.Millisecond, Jitter: time.Millisecond}},
}

const seeds = 6

// figures of a run.
type figures struct{ utilisation, p50, fairness float64 }

// measure runs flows for a time and takes figures from the fifth second on, fairness
// from five seconds after the last start.
func measure(seed uint64, link *paths.Link, length time.Duration, flows ...*paths.Flow) figures {
	w := paths.New(seed, link, flows...)
	w.Run(length)
	from := 5 * time.Second
	capacity, total := 0.0, 0.0
	const grain = 10 * time.Millisecond
	for now := from; now < length; now += grain {
		capacity += link.Rate(now) / float64((length-from)/grain)
	}
	var rates []float64
	for _, f := range flows {
		total += f.Delivered(from, length)
		rates = append(rates, f.Delivered(flows[len(flows)-1].Starts+from, length))
	}
	return figures{total / capacity, link.Queue(.5, from, length).Seconds(), paths.Fairness(rates...)}
}

// onEach runs a link with each style and seed, and asserts what the default promises: 90 % of the
// link, half of the packets waiting less than 30 ms. slack is how much below that share one run may be, and
// its queue may be 40 ms, while the averages are held to it.
func onEach(t *testing.T, slack float64, run func(seed uint64, mk func() *paths.Flow) figures) {
	for _, style := range styles {
		t.Run(style.name, func(t *testing.T) {
			var sum figures
			for seed := uint64(1); seed <= seeds; seed++ {
				f := run(seed, func() *paths.Flow {
					f := style.flow
					f.Controller = adaptive(t)
					return &f
				})
				require.Greater(t, f.utilisation, 0.90-slack, "seed %d", seed)
				require.Less(t, f.p50, 0.040, "seed %d", seed)
				require.Greater(t, f.fairness, 0.75, "seed %d", seed)
				sum.utilisation += f.utilisation / seeds
				sum.p50 += f.p50 / seeds
				sum.fairness += f.fairness / seeds
			}
			t.Logf("utilisation %.3f, median queue %.0f ms, fairness %.3f", sum.utilisation, sum.p50*1e3, sum.fairness)
			require.Greater(t, sum.utilisation, 0.90)
			require.Less(t, sum.p50, 0.030)
			require.Greater(t, sum.fairness, 0.90)
		})
	}
}

func TestLinkDSL(t *testing.T) {
	onEach(t, 0, func(seed uint64, mk func() *paths.Flow) figures {
		link := &paths.Link{Rate: paths.Constant(256e3), Buffer: time.Second, Delay: 20 * time.Millisecond}
		return measure(seed, link, time.Minute, mk())
	})
}

func TestLinkLossy(t *testing.T) {
	onEach(t, 0, func(seed uint64, mk func() *paths.Flow) figures {
		link := &paths.Link{Rate: paths.Constant(20e6), Buffer: 200 * time.Millisecond, Delay: 25 * time.Millisecond, Loss: 0.02}
		return measure(seed, link, time.Minute, mk())
	})
}

func TestLinkDrop(t *testing.T) {
	onEach(t, 0.04, func(seed uint64, mk func() *paths.Flow) figures {
		link := &paths.Link{Rate: dropping, Bytes: 125_000, Delay: 20 * time.Millisecond}
		return measure(seed, link, 95*time.Second, mk())
	})
}

// dropping falls from 10 to 1 Mbit/s for half a minute.
func dropping(now time.Duration) float64 {
	if now >= 35*time.Second && now < 65*time.Second {
		return 1e6
	}
	return 10e6
}

func TestLinkTwoFlows(t *testing.T) {
	onEach(t, 0, func(seed uint64, mk func() *paths.Flow) figures {
		link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 20 * time.Millisecond}
		second := mk()
		second.Starts = 10 * time.Second
		return measure(seed, link, 75*time.Second, mk(), second)
	})
}

func TestSecondFlowIsHeardSoon(t *testing.T) {
	for seed := uint64(1); seed <= seeds; seed++ {
		link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 20 * time.Millisecond}
		first, second := styles[1].flow, styles[1].flow
		first.Controller, second.Controller = adaptive(t), adaptive(t)
		second.Starts = 20 * time.Second
		paths.New(seed, link, &first, &second).Run(30 * time.Second)
		require.Greater(t, second.Delivered(22*time.Second, 30*time.Second), 1e6, "seed %d", seed)
	}
}

func TestRecoversFast(t *testing.T) {
	for seed := uint64(1); seed <= seeds; seed++ {
		link := &paths.Link{Rate: dropping, Bytes: 125_000, Delay: 20 * time.Millisecond}
		f := styles[1].flow
		f.Controller = adaptive(t)
		paths.New(seed, link, &f).Run(75 * time.Second)
		require.Less(t, link.Queue(.5, 39*time.Second, 65*time.Second), 30*time.Millisecond, "seed %d", seed)
		require.Greater(t, f.Delivered(39*time.Second, 65*time.Second), 0.8e6, "seed %d", seed)
		require.Greater(t, f.Delivered(70*time.Second, 75*time.Second), 8e6, "seed %d", seed)
	}
}

func TestApplicationLimitKeepsRate(t *testing.T) {
	for _, style := range styles {
		link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 20 * time.Millisecond}
		f := style.flow
		a := adaptive(t)
		f.Controller = a
		f.Demand = func(now time.Duration) float64 {
			if now > 15*time.Second && now < 45*time.Second {
				return 20_000
			}
			return 10e6
		}
		w := paths.New(3, link, &f)
		w.Run(15 * time.Second)
		require.Greater(t, a.Rate(), 0.6*10e6/8, style.name)
		w.Run(45 * time.Second)
		require.GreaterOrEqual(t, a.Rate(), 0.75*10e6/8, style.name)
		require.LessOrEqual(t, a.Rate(), 1.3*10e6/8, style.name)
		w.Run(50 * time.Second)
		require.Greater(t, f.Delivered(46*time.Second, 50*time.Second), 8e6, style.name)
	}
}

func TestApplicationLimitedFromTheStart(t *testing.T) {
	link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 20 * time.Millisecond}
	f := styles[1].flow
	a := adaptive(t)
	f.Controller = a
	f.Demand = func(time.Duration) float64 { return 20_000 }
	paths.New(1, link, &f).Run(30 * time.Second)
	require.InDelta(t, 160e3, f.Delivered(5*time.Second, 30*time.Second), 10e3)
	require.Less(t, a.Rate(), 10e6/8.0, "a rate that was never used isn't known to be right")
}

// Loss beyond the tolerance that no rate cures, as of a network that reorders, must not
// starve the flow.
func TestHeavyRandomLoss(t *testing.T) {
	for _, loss := range []float64{0.08, 0.15} {
		for seed := uint64(1); seed <= seeds; seed++ {
			link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 20 * time.Millisecond, Loss: loss}
			f := styles[1].flow
			f.Controller = adaptive(t)
			paths.New(seed, link, &f).Run(time.Minute)
			require.Greater(t, f.Delivered(30*time.Second, time.Minute), 0.6*10e6*(1-loss), "seed %d, loss %v", seed, loss)
		}
	}
}

// A buffer too short for delay to show makes loss the only sign.
func TestShallowBuffer(t *testing.T) {
	for seed := uint64(1); seed <= seeds; seed++ {
		link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 4 * time.Millisecond, Delay: 20 * time.Millisecond}
		f := paths.Flow{Tick: 5 * time.Millisecond, Immediate: true, Controller: adaptive(t)}
		w := paths.New(seed, link, &f)
		w.Run(10 * time.Second)
		sent, full := link.Sent, link.Full
		w.Run(time.Minute)
		require.Less(t, float64(link.Full-full)/float64(link.Sent-sent), 0.06, "seed %d", seed)
		require.Greater(t, f.Delivered(10*time.Second, time.Minute), 8e6, "seed %d", seed)
	}
}

func TestBlackout(t *testing.T) {
	link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 20 * time.Millisecond}
	f := styles[1].flow
	a := adaptive(t)
	f.Controller = a
	w := paths.New(1, link, &f)
	w.Run(10 * time.Second)
	link.Loss = 1.1
	before := link.Sent
	w.Run(20 * time.Second)
	require.Less(t, link.Sent-before, 400, "packets into a dead path")
	require.Greater(t, link.Sent-before, 5, "but somebody has to ask")
	link.Loss = 0
	w.Run(40 * time.Second)
	require.Greater(t, f.Delivered(35*time.Second, 40*time.Second), 8e6)
}

// A queue that takes many seconds to go stops nobody: what is lost behind it is found out, and a reliable bunch is sent again.
func TestNeverStarvesBehindAQueue(t *testing.T) {
	for _, style := range styles {
		link := &paths.Link{Rate: func(now time.Duration) float64 {
			if now < 10*time.Second {
				return 100e6
			}
			return 1e6
		}, Bytes: 2_500_000, Delay: 20 * time.Millisecond}
		f := style.flow
		f.Controller = adaptive(t)
		w := paths.New(1, link, &f)
		sent, last, longest := 0, time.Duration(0), time.Duration(0)
		w.Each = func(now time.Duration) {
			if link.Sent > sent {
				sent, last = link.Sent, now
			}
			longest = max(longest, now-last)
		}
		w.Run(40 * time.Second)
		require.LessOrEqual(t, longest, 2*time.Second, style.name)
	}
}

// The first round trip is as long as it is: a path of 600 ms isn't silent, and ticks of 100 ms don't look as if the
// application sent less than it may.
func TestStartsOnALongPath(t *testing.T) {
	for seed := uint64(1); seed <= seeds; seed++ {
		link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 300 * time.Millisecond}
		f := paths.Flow{Tick: 100 * time.Millisecond, AckEvery: 100 * time.Millisecond, Jitter: time.Millisecond}
		a := adaptive(t)
		f.Controller = a
		paths.New(seed, link, &f).Run(time.Second)
		require.Equal(t, 60_000.0, a.Rate(), "seed %d", seed)
	}
}

// TestJitter: where each packet's delay varies by 20 ms on its own, and acks come at 30 Hz or more, delays are no queue.
func TestJitter(t *testing.T) {
	for _, style := range styles[:3] {
		for seed := uint64(1); seed <= 2*seeds; seed++ {
			link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 40 * time.Millisecond, Jitter: 20 * time.Millisecond}
			f := style.flow
			f.Controller = adaptive(t)
			paths.New(seed, link, &f).Run(40 * time.Second)
			share, queue := f.Delivered(10*time.Second, 40*time.Second)/10e6, link.Queue(.5, 10*time.Second, 40*time.Second)
			t.Logf("%s, seed %d: %.2f of the link, median queue %v", style.name, seed, share, queue)
			require.Greater(t, share, 0.85, "%s, seed %d", style.name, seed)
			require.Less(t, queue, 60*time.Millisecond, "%s, seed %d", style.name, seed)
		}
	}
}

// TestLossOfAPath: a cut tells loss that the path has anyway from congestion within a few dozen packets, and one that
// was too small tells nothing.
func TestLossOfAPath(t *testing.T) {
	for _, c := range []struct {
		name        string
		loss, after float64 // before the cut, and after it
		rate        float64 // after it, of that before
		want        []cause
	}{
		{"the path's", 0.2, 0.2, 0.8, []cause{ofThePath}},
		{"congestion", 0.2, 0, 0.75, []cause{answered}},
		{"a cut too small to tell", 0.2, 0.19, 0.97, []cause{congestive}},
		{"congestion that the cut didn't end", 0.75, 0.4, 0.42, []cause{answered, congestive, tolerable}},
	} {
		l := lossTest{base: 0.05, tolerance: 0.05}
		now, carry := time.Duration(0), 0.0
		feed := func(packets int, loss, rate float64) cause {
			for range packets {
				now += seconds(1000, rate)
				if carry += loss; carry >= 1 {
					carry--
					l.lose(now)
				} else {
					l.slot.acked++
				}
				if v := l.verdict(now, rate, false, false); v != tolerable {
					return v
				}
			}
			return tolerable
		}
		require.Equal(t, congestive, feed(100, c.loss, 300_000), c.name)
		require.Contains(t, c.want, feed(150, c.after, c.rate*300_000), c.name)
	}
}

// TestLossIsNotAnsweredByLuck: a path that loses 8 % of what is sent, of which the cut expects 16 %, with one slot that loses more.
// That slot doesn't count as loss that stayed, but it does against loss that went away.
func TestLossIsNotAnsweredByLuck(t *testing.T) {
	l := lossTest{base: 0.05, tolerance: 0.05, lastLoss: 0.163, lastRate: 158_600}
	for i, slot := range []fates{{35, 2}, {16, 3}, {35, 2}} {
		l.slot = slot
		require.Equal(t, tolerable, l.verdict(time.Duration(i+1)*lossSlot, 88_000, false, false), "slot %d", i)
	}
	l.slot = fates{60, 0}
	require.Equal(t, answered, l.verdict(4*lossSlot, 88_000, false, false), "it went away")
}

// TestShortestBuffers: where a queue has room for a packet or two, or for less than the burst of a tick, loss doesn't fall with the rate. A rate at which
// hardly anything arrived never comes back for that.
func TestShortestBuffers(t *testing.T) {
	for _, tick := range []time.Duration{4 * time.Millisecond, 33 * time.Millisecond} {
		for _, rate := range []float64{0.4e6, 1.6e6} {
			for _, buffer := range []time.Duration{time.Millisecond, 20 * time.Millisecond} {
				link := &paths.Link{Rate: paths.Constant(rate), Buffer: buffer, Delay: 75 * time.Millisecond}
				a := adaptive(t)
				f := paths.Flow{Tick: tick, AckEvery: tick, Controller: a}
				w := paths.New(1, link, &f)
				most := 0.0
				w.Each = func(time.Duration) { most = max(most, a.Rate()) }
				w.Run(30 * time.Second)
				require.Less(t, most, 12*rate/8, "ticks of %v, %v bit/s, a buffer of %v", tick, rate, buffer)
			}
		}
	}
}
