package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func adaptive(t testing.TB) *Adaptive {
	c, err := NewAdaptive(AdaptiveConfig{})
	require.NoError(t, err)
	return c
}

// styles are the ways in which games send and peers ack.
var styles = []struct {
	name string
	flow flow
}{
	{"events", flow{tick: 5 * time.Millisecond, immediate: true}},
	{"60Hz", flow{tick: time.Second / 60, ackEvery: time.Second / 60, jitter: time.Millisecond}},
	{"30Hz", flow{tick: time.Second / 30, ackEvery: time.Second / 30, jitter: time.Millisecond}},
	{"60Hz, acks every 200 ms", flow{tick: time.Second / 60, ackEvery: 200 * time.Millisecond, jitter: time.Millisecond}},
}

const seeds = 6

// figures of a run.
type figures struct{ utilisation, p50, fairness float64 }

// measure runs flows for a time and takes figures from the fifth second on, fairness
// from five seconds after the last start.
func measure(seed uint64, link *bottleneck, length time.Duration, flows ...*flow) figures {
	w := newWorld(seed, link, flows...)
	w.run(0, length)
	from := 5 * time.Second
	var capacity, total float64
	for now := from; now < length; now += simStep {
		capacity += link.rate(now) / float64((length-from)/simStep)
	}
	var rates []float64
	for _, f := range flows {
		total += f.delivered(from, length)
		rates = append(rates, f.delivered(flows[len(flows)-1].starts+from, length))
	}
	return figures{total / capacity, link.quantile(.5, from, length).Seconds(), jain(rates...)}
}

// onEach runs a link with each style and seed, and asserts what the default promises: 90 % of the
// link, half of the packets waiting less than 30 ms. slack is how much below that one run may be,
// while the average is held to it.
func onEach(t *testing.T, slack float64, run func(seed uint64, mk func() *flow) figures) {
	for _, style := range styles {
		t.Run(style.name, func(t *testing.T) {
			var sum figures
			for seed := uint64(1); seed <= seeds; seed++ {
				f := run(seed, func() *flow {
					f := style.flow
					f.c = adaptive(t)
					return &f
				})
				require.Greater(t, f.utilisation, 0.90-slack, "seed %d", seed)
				require.Less(t, f.p50, 0.030, "seed %d", seed)
				require.Greater(t, f.fairness, 0.75, "seed %d", seed)
				sum.utilisation += f.utilisation / seeds
				sum.p50 += f.p50 / seeds
				sum.fairness += f.fairness / seeds
			}
			t.Logf("utilisation %.3f, median queue %.0f ms, fairness %.3f", sum.utilisation, sum.p50*1e3, sum.fairness)
			require.Greater(t, sum.utilisation, 0.90)
			require.Greater(t, sum.fairness, 0.90)
		})
	}
}

func TestLinkDSL(t *testing.T) {
	onEach(t, 0, func(seed uint64, mk func() *flow) figures {
		link := &bottleneck{rate: constant(256e3), buffer: time.Second, delay: 20 * time.Millisecond}
		return measure(seed, link, time.Minute, mk())
	})
}

func TestLinkLossy(t *testing.T) {
	onEach(t, 0, func(seed uint64, mk func() *flow) figures {
		link := &bottleneck{rate: constant(20e6), buffer: 200 * time.Millisecond, delay: 25 * time.Millisecond, loss: 0.02}
		return measure(seed, link, time.Minute, mk())
	})
}

func TestLinkDrop(t *testing.T) {
	onEach(t, 0.04, func(seed uint64, mk func() *flow) figures {
		link := &bottleneck{rate: dropping, bytes: 125_000, delay: 20 * time.Millisecond}
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
	onEach(t, 0, func(seed uint64, mk func() *flow) figures {
		link := &bottleneck{rate: constant(10e6), buffer: 200 * time.Millisecond, delay: 20 * time.Millisecond}
		second := mk()
		second.starts = 10 * time.Second
		return measure(seed, link, 75*time.Second, mk(), second)
	})
}

func TestSecondFlowIsHeardSoon(t *testing.T) {
	for seed := uint64(1); seed <= seeds; seed++ {
		link := &bottleneck{rate: constant(10e6), buffer: 200 * time.Millisecond, delay: 20 * time.Millisecond}
		first, second := styles[1].flow, styles[1].flow
		first.c, second.c = adaptive(t), adaptive(t)
		second.starts = 20 * time.Second
		newWorld(seed, link, &first, &second).run(0, 30*time.Second)
		require.Greater(t, second.delivered(22*time.Second, 30*time.Second), 1e6, "seed %d", seed)
	}
}

func TestRecoversFast(t *testing.T) {
	for seed := uint64(1); seed <= seeds; seed++ {
		link := &bottleneck{rate: dropping, bytes: 125_000, delay: 20 * time.Millisecond}
		f := styles[1].flow
		f.c = adaptive(t)
		newWorld(seed, link, &f).run(0, 75*time.Second)
		require.Less(t, link.quantile(.5, 39*time.Second, 65*time.Second), 30*time.Millisecond, "seed %d", seed)
		require.Greater(t, f.delivered(39*time.Second, 65*time.Second), 0.8e6, "seed %d", seed)
		require.Greater(t, f.delivered(70*time.Second, 75*time.Second), 8e6, "seed %d", seed)
	}
}

func TestApplicationLimitKeepsRate(t *testing.T) {
	for _, style := range styles {
		link := &bottleneck{rate: constant(10e6), buffer: 200 * time.Millisecond, delay: 20 * time.Millisecond}
		f := style.flow
		a := adaptive(t)
		f.c = a
		f.app = func(now time.Duration) float64 {
			if now > 15*time.Second && now < 45*time.Second {
				return 20_000
			}
			return 10e6
		}
		w := newWorld(3, link, &f)
		w.run(0, 15*time.Second)
		before := a.Rate()
		require.Greater(t, before, 0.7*10e6/8, style.name)
		w.run(15*time.Second, 45*time.Second)
		require.GreaterOrEqual(t, a.Rate(), 0.75*before, style.name)
		require.LessOrEqual(t, a.Rate(), 1.3*before, style.name)
		w.run(45*time.Second, 50*time.Second)
		require.Greater(t, f.delivered(46*time.Second, 50*time.Second), 8e6, style.name)
	}
}

func TestApplicationLimitedFromTheStart(t *testing.T) {
	link := &bottleneck{rate: constant(10e6), buffer: 200 * time.Millisecond, delay: 20 * time.Millisecond}
	f := styles[1].flow
	a := adaptive(t)
	f.c = a
	f.app = func(time.Duration) float64 { return 20_000 }
	newWorld(1, link, &f).run(0, 30*time.Second)
	require.InDelta(t, 160e3, f.delivered(5*time.Second, 30*time.Second), 10e3)
	require.Less(t, a.Rate(), 10e6/8.0, "a rate that was never used isn't known to be right")
}

// Loss beyond the tolerance that no rate cures, as of a network that reorders, must not
// starve the flow.
func TestHeavyRandomLoss(t *testing.T) {
	for _, loss := range []float64{0.08, 0.15} {
		for seed := uint64(1); seed <= seeds; seed++ {
			link := &bottleneck{rate: constant(10e6), buffer: 200 * time.Millisecond, delay: 20 * time.Millisecond, loss: loss}
			f := styles[1].flow
			f.c = adaptive(t)
			newWorld(seed, link, &f).run(0, time.Minute)
			require.Greater(t, f.delivered(30*time.Second, time.Minute), 0.6*10e6*(1-loss), "seed %d, loss %v", seed, loss)
		}
	}
}

// A buffer too short for delay to show makes loss the only sign.
func TestShallowBuffer(t *testing.T) {
	for seed := uint64(1); seed <= seeds; seed++ {
		link := &bottleneck{rate: constant(10e6), buffer: 4 * time.Millisecond, delay: 20 * time.Millisecond}
		f := flow{tick: 5 * time.Millisecond, immediate: true, c: adaptive(t)}
		w := newWorld(seed, link, &f)
		w.run(0, 10*time.Second)
		sent, full := link.sent, link.full
		w.run(10*time.Second, time.Minute)
		require.Less(t, float64(link.full-full)/float64(link.sent-sent), 0.06, "seed %d", seed)
		require.Greater(t, f.delivered(10*time.Second, time.Minute), 8e6, "seed %d", seed)
	}
}

func TestBlackout(t *testing.T) {
	link := &bottleneck{rate: constant(10e6), buffer: 200 * time.Millisecond, delay: 20 * time.Millisecond}
	f := styles[1].flow
	a := adaptive(t)
	f.c = a
	w := newWorld(1, link, &f)
	w.run(0, 10*time.Second)
	link.loss = 1.1
	before := link.sent
	w.run(10*time.Second, 20*time.Second)
	require.Less(t, link.sent-before, 400, "packets into a dead path")
	require.Greater(t, link.sent-before, 5, "but somebody has to ask")
	link.loss = 0
	w.run(20*time.Second, 40*time.Second)
	require.Greater(t, f.delivered(35*time.Second, 40*time.Second), 8e6)
}
