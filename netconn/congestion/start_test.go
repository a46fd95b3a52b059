package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// TestLossAtLowerRatesIsThePaths: while the rate doubles, loss that was there at half the rate isn't congestion. Where nothing says so, it is.
func TestLossAtLowerRatesIsThePaths(t *testing.T) {
	for _, c := range []struct {
		what    string
		steps   []startStep
		loss    float64 // of the verdict
		excused bool
	}{
		{"20 % at each rate", []startStep{{30e3, fates{32, 7}}, {60e3, fates{52, 15}}, {120e3, fates{9, 4}}}, 0.15, true},
		{"a link of 100 kB/s", []startStep{{30e3, fates{40, 0}}, {60e3, fates{80, 0}}, {120e3, fates{80, 17}}}, 0.15, false},
		{"the same, and 5 % of the path", []startStep{{30e3, fates{38, 2}}, {60e3, fates{76, 4}}, {120e3, fates{60, 30}}}, 0.2, false},
		{"less than the initial rate", []startStep{{30e3, fates{13, 17}}, {60e3, fates{13, 47}}}, 0.6, false},
		{"20 %, and a link of 60 kB/s", []startStep{{30e3, fates{32, 8}}, {60e3, fates{64, 16}}, {120e3, fates{40, 60}}}, 0.5, false},
		{"the newest rate had hardly any packets, and a link of 45 kB/s", []startStep{{30e3, fates{40, 0}}, {60e3, fates{45, 15}}, {120e3, fates{2, 0}}}, 0.15, false},
		{"20 %, and the newest rate has lost none yet", []startStep{{30e3, fates{32, 8}}, {60e3, fates{48, 12}}, {120e3, fates{12, 0}}}, 0.15, true},
		{"a link of 90 kB/s, and a rate that is hardly lower", []startStep{{30e3, fates{40, 0}}, {100e3, fates{60, 15}}, {120e3, fates{80, 17}}}, 0.15, false},
		{"twice the rate loses more, of few packets", []startStep{{30e3, fates{40, 0}}, {60e3, fates{60, 15}}, {120e3, fates{7, 5}}}, 0.15, true},
		{"one rate alone", []startStep{{30e3, fates{32, 8}}}, 0.15, false},
		{"more than is ever a path's own", []startStep{{30e3, fates{20, 20}}, {60e3, fates{40, 40}}}, 0.45, false},
	} {
		var s startSteps
		s.n = copy(s.steps[:], c.steps)
		l := lossTest{base: 0.05, tolerance: 0.05, lastLoss: c.loss}
		require.Equal(t, c.excused, s.excuse(&l), c.what)
		if c.excused {
			require.GreaterOrEqual(t, l.tolerance, c.loss, c.what)
			require.Zero(t, l.lastLoss, c.what)
		} else {
			require.Equal(t, lossTest{base: 0.05, tolerance: 0.05, lastLoss: c.loss}, l, c.what)
		}
	}
}

// TestStepsOfAStart: what leaves at about the same rate is one step, the slowest ones become one when there are too many, and a lower rate begins anew.
func TestStepsOfAStart(t *testing.T) {
	var s startSteps
	rate := 1000.0
	for range 20 {
		s.at(rate).acked++
		s.at(1.1*rate).lost++
		rate *= 2
	}
	require.Equal(t, len(s.steps), s.n)
	var all fates
	for _, step := range s.steps {
		all.add(step.fates)
	}
	require.Equal(t, fates{20, 20}, all)
	require.Equal(t, rate/2, s.steps[s.n-1].rate)
	require.Equal(t, fates{15, 15}, s.steps[0].fates)
	s.at(1000).acked++
	s.at(1000).acked++
	require.Equal(t, 1, s.n)
	require.Equal(t, fates{2, 0}, s.steps[0].fates)
}

// TestDelayThatIsNoQueue: packets that were in flight when a delay ended the start refute it by coming sooner, few of them don't, and what can't be told from a queue doesn't either.
func TestDelayThatIsNoQueue(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what    string
		rtts    []time.Duration
		refuted bool
	}{
		{"one comes as soon as ever", []time.Duration{140, 139, 102, 141}, true},
		{"all wait as long", []time.Duration{140, 139, 141, 150}, false},
		{"shorter, but a queue", []time.Duration{140, 139, 125, 141}, false},
		{"too few", []time.Duration{140, 102, 139}, false},
		{"none", nil, false},
	} {
		d := doubt{delay: 40 * ms, sendGap: 12 * ms, last: 10}
		for i, rtt := range c.rtts {
			d.sample(int64(i), rtt*ms)
		}
		d.sample(11, 100*ms) // left after the cut
		require.Equal(t, c.refuted, d.refuted(100*ms, 10*ms), c.what)
	}
	var none doubt
	none.sample(0, ms)
	require.Equal(t, doubt{}, none)
	last := doubt{delay: 24 * ms, sendGap: 12 * ms, last: 10, packets: doubtPackets - 1}
	last.sample(10, 118*ms)
	last.low = 118 * ms
	require.True(t, last.refuted(100*ms, 10*ms))
	last.low++
	require.False(t, last.refuted(100*ms, 10*ms), "three quarters of a delay that is hardly longer than what can't be told from none")
}

// offers counts the bytes that leave.
type offers struct {
	paths.Controller
	bytes int
}

func (o *offers) OnSent(now time.Duration, id int64, bytes int) {
	o.bytes += bytes
	o.Controller.OnSent(now, id, bytes)
}

// TestStartOnNarrowLinks: what is offered for a byte that is delivered, in the first 4 s. What a start doubts costs nothing where there is a queue.
func TestStartOnNarrowLinks(t *testing.T) {
	const ms, length = time.Millisecond, 4 * time.Second
	for _, c := range []struct {
		bits              float64
		tick, buffer, rtt time.Duration
		loss, most        float64
	}{
		{0.4e6, 8, 40, 20, 0, 1.25},
		{0.4e6, 16, 100, 20, 0, 1.18},
		{0.4e6, 16, 100, 20, 0.05, 1.24},
		{1e6, 8, 100, 100, 0, 1.18},
		{1e6, 8, 40, 100, 0.05, 1.36},
		{1e6, 16, 60, 600, 0, 1.6}, // packets that a drain sends seldom make its queue no less clear
	} {
		offered, delivered := 0, 0.0
		for seed := range uint64(4) {
			o := &offers{Controller: adaptive(t)}
			link := &paths.Link{Rate: paths.Constant(c.bits), Buffer: c.buffer * ms, Delay: c.rtt / 2 * ms, Loss: c.loss}
			f := paths.Flow{Controller: o, Tick: c.tick * ms, AckEvery: c.tick * ms, Jitter: ms}
			paths.New(seed, link, &f).Run(length)
			offered += o.bytes
			delivered += f.Delivered(0, length) / 8 * length.Seconds()
		}
		t.Logf("seeds from 0, %+v: %.2f", c, float64(offered)/delivered)
		require.LessOrEqual(t, float64(offered)/delivered, c.most, "%+v", c)
	}
}
