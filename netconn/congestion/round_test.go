package congestion

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEndOfARound: a round ends with the feedback on the last packet that had been sent when it began, after a time if it knows a round trip time, or at once where that has risen far; and none ends that hasn't begun.
func TestEndOfARound(t *testing.T) {
	const long = time.Second
	for name, v := range map[string]struct {
		closed, done, low bool
		recent, base      time.Duration
		drains            bool
		sendGap           time.Duration
		took              time.Duration
		ends              bool
	}{
		"done":                     {done: true, took: minRound, ends: true},
		"done too soon":            {done: true, took: minRound - 1},
		"long":                     {low: true, took: long, ends: true},
		"not long":                 {low: true, took: minRound},
		"long, without feedback":   {took: long},
		"longer than it was":       {recent: 71 * ms, base: 50 * ms, took: minRound, ends: true},
		"a little longer":          {recent: 70 * ms, base: 50 * ms, took: minRound},
		"longer, for less":         {recent: 71 * ms, base: 50 * ms, took: minRound - 1},
		"nobody knows what it was": {recent: 71 * ms, took: minRound},
		"longer, as known":         {recent: 71 * ms, base: 50 * ms, drains: true, took: minRound},
		"of few bursts":            {low: true, base: time.Second, sendGap: 100 * ms, took: 300 * ms},
		"of more":                  {low: true, base: time.Second, sendGap: 100 * ms, took: 300*ms + 1, ends: true},
		"none":                     {closed: true, recent: 71 * ms, base: 50 * ms, took: long},
	} {
		a := adaptive(t)
		a.round.begin(time.Minute, 1, false)
		a.round.open, a.round.done = !v.closed, v.done
		if v.low {
			a.round.low = 50 * ms
		}
		a.recent.lows = [3]time.Duration{v.recent, v.recent, v.recent}
		if v.base > 0 {
			a.queue.base.set(0, v.base)
		}
		a.sendGap, a.full, a.wants = v.sendGap, true, true
		if v.drains {
			a.phase = Drain
		}
		a.lastFeedback = time.Minute + v.took
		a.settle(a.lastFeedback)
		require.Equal(t, v.ends, a.out.n == 1, name)
		require.Equal(t, v.ends && !v.done, a.queue.n == 1, "%s: what was done without a round trip time says nothing of it", name)
		require.Equal(t, v.ends, a.pacer.last == a.lastFeedback, "%s: the time until then has the rate of then", name)
		require.Equal(t, !v.ends, a.full && a.wants, name)
		require.Equal(t, !v.ends, a.full || a.wants, name)
		require.Equal(t, !v.ends && !v.closed, a.round.open, "%s: another one begins with what is sent", name)
	}
}

// TestQuietRounds: eight rounds in a row in which an application that leaves credit unused sends less than MinRate say how long the path is; one in which more is sent, or what there was credit for, begins the count anew.
func TestQuietRounds(t *testing.T) {
	a := adaptive(t)
	a.queue.base.set(0, 20*ms)
	a.lastFeedback = time.Second
	round := func(idle bool, acked, lost int) {
		a.round.begin(a.lastFeedback, 1, false)
		a.round.done, a.round.low, a.round.first, a.round.acked, a.round.lost = true, 25*ms, 1, acked, lost
		a.idle, a.full = -1, true
		if idle {
			a.idle = 1
		}
		a.lastFeedback += 100 * ms
		a.settle(a.lastFeedback)
	}
	for _, v := range []struct {
		idle        bool
		acked, lost int
		quiet       int
	}{{true, 399, 0, 1}, {true, 200, 199, 2}, {true, 200, 200, 0}, {true, 0, 0, 1}, {true, 400, 0, 0}, {true, 0, 0, 1}, {false, 100, 0, 0}} {
		round(v.idle, v.acked, v.lost)
		require.Equal(t, v.quiet, a.hushed, "%+v", v)
	}
	for i := range 8 {
		require.Equal(t, 20*ms, a.BaseRTT(), "%d rounds", i)
		round(true, 100, 0)
	}
	require.Equal(t, 25*ms, a.BaseRTT())
}

// TestPaidBefore: what is sent as a round ends is paid for at the rate of before, also where another one ends at that moment.
func TestPaidBefore(t *testing.T) {
	a := adaptive(t)
	a.start(0)
	const end = 100 * ms
	for id := range int64(2) {
		a.round.begin(0, id, true)
		a.round.done, a.inflight, a.lastID, a.lastFeedback = true, 1000, 7, end
		a.pacer.credit = -1e4
		rate := a.Rate()
		a.settle(end)
		require.Greater(t, a.Rate(), rate)
		require.Equal(t, round{open: true, start: end, end: 7}, a.round, "what is in flight is of the next")
		a.OnSent(end, 8+id, 1000)
		require.Equal(t, 30_000.0, a.rates.of(8+id))
	}
	a.OnSent(end+1, 10, 1000)
	require.Equal(t, a.Rate(), a.rates.of(10))
}

// TestApart: bursts are as far apart as the peer's acks where these come less than ten times a second.
func TestApart(t *testing.T) {
	for _, v := range [][3]time.Duration{{16 * ms, 100 * ms, 16 * ms}, {16 * ms, 100*ms + 1, 100*ms + 1}, {200 * ms, 150 * ms, 200 * ms}, {200 * ms, 16 * ms, 200 * ms}} {
		a := adaptive(t)
		a.sendGap, a.ackGap = v[0], v[1]
		require.Equal(t, v[2], a.apart())
	}
}

// delayed is a controller on a path of 50 ms that has a delay of so much now.
func delayed(t *testing.T, delay time.Duration) *Adaptive {
	a := adaptive(t)
	a.queue.base.set(0, 50*ms)
	a.queue.low = 50*ms + delay
	return a
}

// delivers has the link deliver so much of what was asked, in bytes a second, for a second.
func (a *Adaptive) delivers(through, asked float64) {
	a.out.reset()
	a.out.rounds[0] = outcome{sent: float32(asked), acked: float32(through), through: float32(through), asked: float32(asked), took: time.Second}
	a.out.n = 1
}

// TestDelayThatStays: the delay after a drain is what it was if it differs by TargetDelay at most, or where it had risen at once by a quarter and the time between bursts.
func TestDelayThatStays(t *testing.T) {
	for _, v := range []struct {
		was, is      time.Duration
		leapt, stays bool
	}{
		{80 * ms, 90 * ms, false, true},
		{80 * ms, 90*ms + 1, false, false},
		{80 * ms, 70 * ms, false, true},
		{80 * ms, 70*ms - 1, false, false},
		{80 * ms, 112 * ms, true, true},
		{80 * ms, 112*ms + 1, true, false},
		{80 * ms, 48 * ms, true, true},
		{80 * ms, 48*ms - 1, true, false},
	} {
		a := delayed(t, v.is)
		a.sendGap, a.epoch.queue, a.epoch.leapt = 12*ms, v.was, v.leapt
		require.Equal(t, v.stays, a.stays(), "%+v", v)
	}
}

// TestDelayThatLingers: a delay that had risen at once, and that a drain has left, is no congestion while it stays.
func TestDelayThatLingers(t *testing.T) {
	for name, v := range map[string]struct {
		change  func(e *epoch)
		delay   time.Duration
		lingers bool
	}{
		"as it was":           {func(*epoch) {}, 80 * ms, true},
		"another":             {func(*epoch) {}, 120 * ms, false},
		"hardly any":          {func(e *epoch) { e.queue = 15 * ms }, 15 * ms, false},
		"a little":            {func(e *epoch) { e.queue = 15 * ms }, 15*ms + 1, true},
		"not in vain":         {func(e *epoch) { e.vain = 0 }, 80 * ms, false},
		"it rose slowly":      {func(e *epoch) { e.leapt = false }, 80 * ms, false},
		"no congestion since": {func(e *epoch) { e.on = false }, 80 * ms, false},
	} {
		a := delayed(t, v.delay)
		a.queue.noises[0] = 5 * ms
		a.epoch = epoch{on: true, vain: 1, leapt: true, queue: 80 * ms}
		v.change(&a.epoch)
		require.Equal(t, v.lingers, a.lingers(), name)
	}
}

// TestLossBeyondThePaths: a queue is full when more is lost than the path loses anyway, by more than two packets.
func TestLossBeyondThePaths(t *testing.T) {
	for lost, full := range map[int]bool{0: false, 7400: false, 7401: true} {
		a := adaptive(t)
		a.epoch.acked, a.epoch.lost = 100_000-lost, lost
		require.Equal(t, full, a.overflows(), "5 %% and 2400 bytes: %d", lost)
	}
}

// TestYields: a rate that is much less than what was delivered lately has yielded to others: less than three quarters of it, or half where the delay rose at once.
func TestYields(t *testing.T) {
	for _, v := range []struct {
		rate          float64
		leapt, yields bool
	}{{75_000, false, false}, {74_999, false, true}, {50_000, true, false}, {49_999, true, true}} {
		a := adaptive(t)
		a.lately.sample(0, 100_000)
		a.epoch.before.rate, a.epoch.leapt = v.rate, v.leapt
		require.Equal(t, v.yields, a.yielded(), "%+v", v)
	}
}

// TestVainDrains: a delay that drains leave as it was is the path's after two of them, or after one where it rose by more than others can make it. Loss, a rate that has yielded and another delay tell of a queue.
func TestVainDrains(t *testing.T) {
	for name, v := range map[string]struct {
		change func(a *Adaptive)
		vain   int // before
		sure   bool
		then   int
	}{
		"the first":            {func(*Adaptive) {}, 0, false, 1},
		"the second":           {func(*Adaptive) {}, 1, true, 0},
		"the first, far":       {func(a *Adaptive) { a.epoch.far = true }, 0, true, 0},
		"far, and another now": {func(a *Adaptive) { a.epoch.far, a.epoch.queue = true, 10*ms }, 0, true, 0},
		"another delay":        {func(a *Adaptive) { a.epoch.queue = 10 * ms }, 1, false, 1},
		"a full queue":         {func(a *Adaptive) { a.epoch.lost, a.epoch.far = 50_000, true }, 1, false, 1},
		"others have taken it": {func(a *Adaptive) { a.epoch.before.rate, a.epoch.far = 100, true }, 1, false, 1},
	} {
		a := delayed(t, 80*ms)
		a.lately.sample(0, 100_000)
		a.phase, a.rate = Cruise, 70_000
		a.epoch = epoch{on: true, queue: 80 * ms, vain: v.vain, before: memory{90_000, 95_000, Startup}}
		v.change(a)
		before := a.epoch.before
		require.Equal(t, v.sure, a.vain(time.Minute), name)
		require.True(t, a.epoch.counted, name)
		require.Equal(t, v.then, a.epoch.vain, name)
		require.Equal(t, !v.sure, a.epoch.on, name)
		if v.sure {
			require.Equal(t, 130*ms, a.BaseRTT(), name)
			require.Equal(t, before, memory{a.rate, a.capacity, a.phase}, "%s: the rate is what it was", name)
			require.Zero(t, a.epoch.before, name)
		} else {
			require.Equal(t, 50*ms, a.BaseRTT(), name)
			require.Equal(t, 70_000.0, a.rate, name)
		}
	}
}

// TestRestoresNoLowerRate: what a cut has taken comes back where the rate is lower than it was, and what was sent until then is paid for at that.
func TestRestoresNoLowerRate(t *testing.T) {
	for rate, restored := range map[float64]bool{89_999: true, 90_000: false, 100_000: false} {
		a := adaptive(t)
		a.start(0)
		a.rate, a.capacity, a.phase = rate, 1000, Cruise
		before := memory{90_000, 95_000, Startup}
		a.restore(100*ms, &before)
		if restored {
			require.Equal(t, memory{90_000, 95_000, Startup}, memory{a.rate, a.capacity, a.phase})
			require.Zero(t, before, "once")
			require.Equal(t, 100*ms, a.pacer.last)
		} else {
			require.Equal(t, memory{rate, 1000, Cruise}, memory{a.rate, a.capacity, a.phase})
			require.NotZero(t, before)
		}
	}
}

// TestWhatADrainTells: what is delivered in a drain is the link's if it is far more than the known capacity, or less in the first one, with a queue that falls, or with one that rises.
func TestWhatADrainTells(t *testing.T) {
	for name, v := range map[string]struct {
		out         float64
		again, seen bool
		queue       time.Duration
		tells       bool
	}{
		"more":                                  {115_001, true, true, 80 * ms, true},
		"as much":                               {114_999, false, true, 0, false},
		"hardly less":                           {90_000, false, true, 0, false},
		"less":                                  {89_999, false, true, 80 * ms, true},
		"again":                                 {89_999, true, true, 80 * ms, true},
		"as little as is sent":                  {34_500, true, true, 80 * ms, false},
		"a little more":                         {34_501, true, true, 80 * ms, true},
		"again, and the queue falls":            {34_500, true, true, 60*ms - 1, true},
		"again, and it hardly does":             {34_500, true, true, 60 * ms, false},
		"again, and it rises":                   {34_500, true, true, 100*ms + 1, true},
		"again, and it hardly rises":            {34_500, true, true, 100 * ms, false},
		"of what was sent before, it stays":     {89_999, true, false, 100 * ms, false},
		"of what was sent before, and it rises": {89_999, true, false, 100*ms + 1, true},
	} {
		a := delayed(t, v.queue)
		a.phase, a.capacity, a.gain, a.drained = Drain, 100_000, 0.3, 80*ms
		a.epoch.again, a.epoch.seen = v.again, v.seen
		a.delivers(v.out, v.out)
		require.Equal(t, v.tells, a.drains(), name)
	}
}

// TestEndOfADrain: a drain ends when hardly anything is in flight, when a packet that was sent in it meets no queue, or when its time is over and the queue isn't shorter. A queue that has become shorter gets more time.
func TestEndOfADrain(t *testing.T) {
	const until = 10 * time.Second
	for name, v := range map[string]struct {
		inflight int
		seen     bool
		now      time.Duration
		queue    time.Duration
		guessed  bool
		ends     bool
		vain     bool
	}{
		"it goes on":                    {5001, true, until - 1, 60 * ms, false, false, false},
		"empty":                         {5000, false, until - 1, 60 * ms, false, true, false},
		"empty, and there is a delay":   {5000, true, until - 1, 60 * ms, false, true, true},
		"seen":                          {5001, true, until - 1, 10 * ms, false, true, false},
		"seen, of a packet before":      {5001, false, until - 1, 10 * ms, false, false, false},
		"seen, and a queue":             {5001, true, until - 1, 10*ms + 1, false, false, false},
		"its time is over":              {5001, false, until, 60 * ms, false, true, true},
		"its time is over, but shorter": {5001, false, until, 60*ms - 1, false, false, false},
		"empty, and shorter":            {5000, true, until, 60*ms - 1, false, true, false},
		"of a capacity nobody knows":    {5000, true, until, 60*ms - 1, true, true, false},
	} {
		a := delayed(t, v.queue)
		a.start(0)
		a.phase, a.capacity, a.gain, a.drained, a.until, a.guessed, a.longest = Drain, 100_000, 0.5, 80*ms, until, v.guessed, 60*ms
		a.inflight, a.lastID, a.rate = v.inflight, 7, 70_000
		a.epoch = epoch{on: true, seen: v.seen, queue: v.queue, before: memory{rate: 60_000}}
		a.queue.n, a.calmSince = 5, 1
		a.draining(v.now)
		require.Equal(t, v.ends, a.phase != Drain, name)
		require.Equal(t, v.vain, a.epoch.counted, name)
		if !v.ends {
			require.Equal(t, time.Duration(1), a.calmSince, name)
			if v.now == until {
				require.Equal(t, v.queue, a.drained, name)
				require.Equal(t, until+60*ms+2*v.queue, a.until, "%s: a round trip, and what half the rate needs", name)
			}
			continue
		}
		require.Equal(t, v.now, a.calmSince, name)
		require.Zero(t, a.queue.n, "%s: the average follows too late", name)
		require.Equal(t, int64(7), a.deaf, "%s: what is in flight waited for the queue", name)
		if v.guessed {
			require.Equal(t, Startup, a.phase, name)
			require.Zero(t, a.capacity, name)
			require.False(t, a.guessed, name)
		} else {
			require.Equal(t, Cruise, a.phase, name)
			require.Equal(t, 100_000.0, a.capacity, name)
		}
	}
}

// TestRefutedDrain: a drain ends at once when packets from before it show that there was no queue beyond twice TargetDelay and the time between bursts. What they differ by is noise from then on, and the start goes on.
func TestRefutedDrain(t *testing.T) {
	for low, refuted := range map[time.Duration]bool{80 * ms: true, 80*ms + 1: false} {
		a := delayed(t, 80*ms)
		a.start(0)
		a.phase, a.capacity, a.gain, a.until, a.guessed = Drain, 15_000, 0.5, time.Minute, true
		a.inflight, a.lastID, a.rate, a.queue.n = 50_000, 7, 14_000, 5
		a.epoch.on = true
		a.doubt = doubt{delay: 41 * ms, sendGap: 10 * ms, last: 5, low: low, packets: doubtPackets, before: memory{60_000, 0, Startup}}
		a.draining(time.Second)
		require.Equal(t, refuted, a.phase != Drain)
		if !refuted {
			continue
		}
		require.Equal(t, memory{60_000, 0, Startup}, memory{a.rate, a.capacity, a.phase})
		require.Zero(t, a.doubt)
		require.False(t, a.epoch.on || a.guessed)
		require.Equal(t, maxNoise, a.queue.noise())
		require.Zero(t, a.queue.n)
		require.Equal(t, int64(7), a.deaf)
	}
}

// TestCalmTime: it is 1.7 s at 10 Mbit/s, less for slower flows and on longer paths, and least where there has been much more.
func TestCalmTime(t *testing.T) {
	for _, v := range []struct {
		rate, best float64
		base, back time.Duration
		calm       time.Duration
	}{
		{1.25e6, 5e6, 0, 0, calm},
		{1.25e6, 5e6 + 4, 0, 0, calm / 3},
		{10e3, 0, 0, 0, 1020 * ms},
		{625e3, 0, 0, 0, 1429524 * time.Microsecond},
		{1e9, 0, 0, 0, 2210 * ms},
		{1.25e6, 0, 100 * ms, 0, 1450 * ms},
		{1.25e6, 0, 100 * ms, 20 * ms, 1400 * ms},
		{1.25e6, 0, time.Second, 0, calm / 2},
	} {
		a := adaptive(t)
		a.rate, a.best, a.back = v.rate, v.best, v.back
		if v.base > 0 {
			a.queue.base.set(0, v.base)
		}
		require.InDelta(t, v.calm, a.calmTime(), float64(time.Microsecond), "%+v", v)
	}
}

// TestPartOfADoubling: a round brings as much of one as it is of three quarters of a round trip, or of six tenths where the link has turned out to be another, and all of it at most.
func TestPartOfADoubling(t *testing.T) {
	for name, v := range map[string]struct {
		done  bool
		base  time.Duration
		phase Phase
		out   float64
		took  time.Duration
		part  float64
	}{
		"all":             {true, 200 * ms, Cruise, 0, 30 * ms, 1},
		"unknown":         {false, 0, Cruise, 0, 30 * ms, 1},
		"a fifth":         {false, 200 * ms, Cruise, 130_000, 30 * ms, 0.2},
		"of another link": {false, 200 * ms, Cruise, 130_001, 30 * ms, 0.25},
		"in the start":    {false, 200 * ms, Startup, 200_000, 30 * ms, 0.2},
		"not more":        {false, 200 * ms, Cruise, 0, 300 * ms, 1},
	} {
		a := delayed(t, 0)
		a.phase, a.capacity = v.phase, 100_000
		if a.queue.base = (baseRTT{}); v.base > 0 {
			a.queue.base.set(0, v.base)
		}
		a.delivers(v.out, v.out)
		require.InDelta(t, v.part, a.part(&round{done: v.done}, v.took), 1e-9, name)
	}
}

// TestProbe: beyond what is known to be there the rate grows by 30 % of it to 150 %, and in between by 600 times the root. Where the link delivers far more than the known capacity nothing bounds it.
func TestProbe(t *testing.T) {
	for _, v := range []struct{ capacity, out, rate, probe float64 }{
		{1e6, 1.2e6, 1e6, math.MaxFloat64},
		{100_000, 115_000, 90_000, math.MaxFloat64},
		{160_000, 160_000, 160_000, 150 * 1600},     // 240 kB/s are 1.5 of it
		{1e6, 1e6, 1e6, 600_000},                    // of 1000
		{1e6, 900_000, 1e6, 600_000},                // the capacity counts
		{1e6, 1.1e6, 1.1e6, 600 * math.Sqrt(1.1e6)}, // or more than it
		{1e6, 1e6, 1.2e6, 400_000},                  // some of it is there
		{1e6, 1e6, 2e6, 0},                          // all of it
		{1e4, 1e4, 1e4, 1.5e4},
		{1e8, 1e8, 1e8, 3e7},
	} {
		a := adaptive(t)
		a.capacity, a.rate = v.capacity, v.rate
		a.delivers(v.out, v.out)
		require.InEpsilon(t, v.probe+1, a.probe()+1, 1e-4, "%+v", v)
	}
}

// TestGrowth: the rate grows by 31 bytes a second for each root of it, by 2 % to 6 % of it a second, and five times as fast behind a drain, up to nearly the known capacity. Without a link that follows it doesn't.
func TestGrowth(t *testing.T) {
	const at, took = time.Minute, 100 * ms
	for name, v := range map[string]struct {
		rate, capacity float64
		calm           time.Duration
		share          float64
		grows          float64
	}{
		"slow":                         {100e3, 100e3, 700 * ms, 0.95, 600},
		"between":                      {1e6, 1e6, 700 * ms, 0.95, 3100},
		"fast":                         {1e7, 1e7, 700 * ms, 0.95, 20e3},
		"it hardly follows":            {1e6, 1e6, 700 * ms, 0.71, 3100},
		"it doesn't":                   {1e6, 1e6, 700 * ms, 0.69, 0},
		"hurry":                        {1e6, 1.1e6, 600*ms - 1, 0.95, 15_500},
		"no hurry":                     {1e6, 1.1e6, 600 * ms, 0.95, 3100},
		"hurry, nearly":                {1e6, 1e6 * 1.01 / nearly, 600*ms - 1, 0.95, 10e3},
		"hurry, is there":              {1e6, 1e6 / nearly, 600*ms - 1, 0.95, 3100},
		"beyond, as it doesn't follow": {1e6, 0.9e6, 700 * ms, 0.9, 3100},
	} {
		a := delayed(t, 0)
		a.rate, a.capacity, a.calmSince, a.step, a.proven, a.best = v.rate, v.capacity, at-v.calm, 1234, 1, 2
		a.phase = Cruise
		a.delivers(v.share*v.rate, v.rate)
		a.grow(at, &round{}, took)
		require.InDelta(t, v.rate+v.grows, a.rate, 1, name)
		require.Zero(t, a.step, name)
		if v.share > overloaded {
			require.InEpsilon(t, v.share*v.rate, a.proven, 1e-6, name)
			require.Equal(t, []float64{a.proven, a.proven}, []float64{a.best, a.lately.get()}, name)
		} else {
			require.Equal(t, []float64{1, 2, 0}, []float64{a.proven, a.best, a.lately.get()}, "%s: nothing is proven", name)
		}
	}
}

// TestLooksForMore: where more than the known capacity is delivered, or there was no congestion for a calm time, growth doubles from round to round, as long as the link follows and there is no queue.
func TestLooksForMore(t *testing.T) {
	const at = time.Minute
	for name, v := range map[string]struct {
		capacity float64
		calm     time.Duration
		share    float64
		delay    time.Duration
		leaps    bool
	}{
		"calm":                       {1e6, 1608 * ms, 0.95, 0, true},
		"not yet":                    {1e6, 1607 * ms, 0.95, 0, false},
		"beyond it":                  {0.95e6, time.Second, 0.95, 0, true},
		"hardly beyond":              {0.96e6, time.Second, 0.95, 0, false},
		"beyond, and hardly follows": {0.95e6, time.Second, 0.9, 0, false},
		"far beyond":                 {0.7e6, time.Second, 0.85, 0, true},
		"not far beyond":             {0.8e6, time.Second, 0.85, 0, false},
		"a delay":                    {0.95e6, time.Second, 0.95, 10 * ms, true},
		"a queue":                    {0.95e6, time.Second, 0.95, 10*ms + 1, false},
	} {
		a := delayed(t, v.delay)
		a.queue.base.set(0, 1)
		a.queue.low = v.delay + 1
		a.rate, a.capacity, a.calmSince, a.step = 1e6, v.capacity, at-v.calm, 100e3
		a.phase = Cruise
		a.delivers(v.share*1e6, 1e6)
		a.grow(at, &round{done: true}, 115*ms)
		if v.leaps {
			require.InEpsilon(t, 1.2e6, a.rate, 1e-6, name)
			require.InEpsilon(t, 200e3, a.step, 1e-6, name)
		} else {
			require.InDelta(t, 1e6+3565, a.rate, 1, name)
			require.Zero(t, a.step, name)
		}
	}
	a := delayed(t, 0)
	a.rate, a.capacity, a.phase, a.step = 1e6, 0.95e6, Cruise, 900e3
	a.delivers(1e6, 1e6)
	a.grow(at, &round{done: true}, 115*ms)
	require.InEpsilon(t, 1.6e6, a.rate, 1e-6, "by no more than what may be lost until it shows")
}

// TestStepsOfGrowth: growth beyond the known capacity doubles in 115 ms, twice in a round at most. It waits for three rounds where a delay may be the bursts' own, but not where the link is another. It is never more than the rate.
func TestStepsOfGrowth(t *testing.T) {
	const inc = 1000
	for name, v := range map[string]struct {
		step        float64
		waited      int
		delay       time.Duration
		best, out   float64
		took        time.Duration
		then, grows float64
		waits       int
	}{
		"doubles":                         {50e3, 0, 0, 0, 1e5, 115 * ms, 100e3, 100e3, 0},
		"in half the time":                {50e3, 0, 0, 0, 1e5, 57500 * time.Microsecond, 50e3 * math.Sqrt2, 25e3 * math.Sqrt2, 0},
		"twice at most":                   {50e3, 0, 0, 0, 1e5, time.Second, 200e3, 200e3, 0},
		"begins":                          {0, 0, 0, 0, 1e5, 115 * ms, 1000, 1000, 0},
		"begins for half":                 {0, 0, 0, 0, 1e5, 57500 * time.Microsecond, 2000, 1000, 0},
		"as much as there is":             {900e3, 0, 0, 0, 1e5, 115 * ms, 1e6, 1e6, 0},
		"there was much more":             {50e3, 0, 0, 4e6 + 4, 1e5, 115 * ms, 250e3, 250e3, 0},
		"there was more":                  {50e3, 0, 0, 4e6, 1e5, 115 * ms, 100e3, 100e3, 0},
		"half of a burst":                 {50e3, 1, 16 * ms, 0, 1e5, 115 * ms, 100e3, 100e3, 0},
		"more than half of one":           {50e3, 1, 16*ms + 1, 0, 1e5, 115 * ms, 50e3, 50e3, 2},
		"the third":                       {50e3, 2, 16*ms + 1, 0, 1e5, 115 * ms, 100e3, 100e3, 0},
		"another link":                    {50e3, 1, 16*ms + 1, 0, 131e3, 115 * ms, 100e3, 100e3, 0},
		"hardly another":                  {50e3, 1, 16*ms + 1, 0, 129e3, 115 * ms, 50e3, 50e3, 2},
		"half, where there was much more": {50e3, 0, 0, 4e6 + 4, 1e5, 57500 * time.Microsecond, 250e3, 125e3, 0},
	} {
		a := delayed(t, v.delay)
		a.sendGap = 12 * ms // what is unclear is 22 ms
		a.rate, a.capacity, a.phase, a.best, a.step, a.waited = 1e6, 1e5, Cruise, v.best, v.step, v.waited
		a.delivers(v.out, v.out)
		require.InEpsilon(t, v.grows, a.leap(&round{done: true}, inc, v.took), 1e-9, name)
		require.InEpsilon(t, v.then, a.step, 1e-9, name)
		require.Equal(t, v.waits, a.waited, name)
	}
}

// TestAnswersCongestion: congestion is answered once in a second, and again where the link delivers far less than the rate. Where a drain has left the delay as it was that is the path's; and after three answers in vain, without loss, too.
func TestAnswersCongestion(t *testing.T) {
	const now = time.Minute
	for name, v := range map[string]struct {
		change func(a *Adaptive)
		cut    bool
		longer bool
		cuts   int
	}{
		"the first":                           {func(a *Adaptive) { a.epoch.on = false }, true, false, 0},
		"once":                                {func(*Adaptive) {}, false, false, 1},
		"a second":                            {func(a *Adaptive) { a.epoch.lastCut = now - time.Second }, false, false, 1},
		"more":                                {func(a *Adaptive) { a.epoch.lastCut = now - time.Second - 1 }, true, false, 2},
		"more, and less is delivered":         {func(a *Adaptive) { a.epoch.lastCut = now - time.Second - 1; a.delivers(90e3, 1e5) }, true, false, 1},
		"a third time":                        {func(a *Adaptive) { a.epoch.lastCut, a.epoch.cuts = now-time.Second-1, 2 }, false, true, 0},
		"a third time, and lost":              {func(a *Adaptive) { a.epoch.lastCut, a.epoch.cuts, a.epoch.lost = now-time.Second-1, 2, 50e3 }, true, false, 3},
		"a third time, of nothing":            {func(a *Adaptive) { a.epoch.lastCut, a.epoch.cuts, a.round.low = now-time.Second-1, 2, 0 }, true, false, 3},
		"far less is delivered":               {func(a *Adaptive) { a.delivers(69e3, 1e5); a.out.n, a.out.rounds[1] = 2, a.out.rounds[0] }, true, false, 1},
		"less is":                             {func(a *Adaptive) { a.delivers(70e3, 1e5); a.out.n, a.out.rounds[1] = 2, a.out.rounds[0] }, false, false, 1},
		"far less, of one round":              {func(a *Adaptive) { a.delivers(69e3, 1e5) }, false, false, 1},
		"it stays":                            {func(a *Adaptive) { a.epoch.queue, a.epoch.vain = 80*ms, 1 }, false, true, 1},
		"it stays, and has been counted":      {func(a *Adaptive) { a.epoch.queue, a.epoch.vain, a.epoch.counted = 80*ms, 1, true }, false, false, 1},
		"it stays, as far as is timed":        {func(a *Adaptive) { a.epoch.queue, a.epoch.vain = 80*ms, 1; a.out.reset() }, false, false, 1},
		"it leapt and stays, and isn't timed": {func(a *Adaptive) { a.epoch.queue, a.epoch.vain, a.epoch.leapt = 80*ms, 1, true; a.out.reset() }, false, true, 1},
		"it stays for the first time":         {func(a *Adaptive) { a.epoch.queue, a.epoch.lastCut = 80*ms, now-time.Second-1 }, true, false, 2},
	} {
		a := delayed(t, 80*ms)
		a.start(0)
		a.phase, a.rate, a.capacity = Cruise, 100e3, 100e3
		a.epoch = epoch{on: true, lastCut: now - 1, queue: 10 * ms, cuts: 1, acked: 50e3}
		a.round.low = 130 * ms
		a.delivers(90_001, 1e5)
		v.change(a)
		a.congested(now, &a.round, false, false)
		require.Equal(t, v.cut, a.phase == Drain, name)
		require.Equal(t, v.longer, a.BaseRTT() == 130*ms, name)
		require.Equal(t, v.cuts, a.epoch.cuts, name)
		require.Equal(t, !v.longer, a.epoch.on, name)
	}
}

// TestCutOfARate: a cut lowers the rate to 0.89 of what was delivered, or of half the rate where nobody knows that, drains the queue, and remembers what was known before. What an application that uses less than the rate gets through has no queue of ours.
func TestCutOfARate(t *testing.T) {
	const now = time.Minute
	for name, v := range map[string]struct {
		change  func(a *Adaptive)
		lossy   bool
		rate    float64 // 0: no cut
		before  memory  // 0: as it was
		guessed bool
		doubts  bool
	}{
		"in cruise":            {func(*Adaptive) {}, false, 71_200, memory{100e3, 100e3, Cruise}, false, false},
		"known to be less":     {func(a *Adaptive) { a.capacity, a.proven = 80e3, 60e3 }, false, 71_200, memory{84e3, 80e3, Cruise}, false, false},
		"proven to be more":    {func(a *Adaptive) { a.capacity, a.proven = 60e3, 80e3 }, false, 71_200, memory{84e3, 60e3, Cruise}, false, false},
		"again":                {func(a *Adaptive) { a.epoch.on, a.epoch.cuts, a.epoch.vain, a.epoch.before.rate = true, 2, 1, 5 }, false, 71_200, memory{5, 0, 0}, false, false},
		"more is delivered":    {func(a *Adaptive) { a.delivers(200e3, 200e3) }, false, 89_000, memory{100e3, 100e3, Cruise}, false, false},
		"nobody knows":         {func(a *Adaptive) { a.out.reset() }, false, 44_500, memory{100e3, 100e3, Cruise}, false, false},
		"the start":            {func(a *Adaptive) { a.phase, a.capacity = Startup, 0 }, false, 71_200, memory{50e3, 0, Startup}, false, true},
		"the start, for loss":  {func(a *Adaptive) { a.phase, a.capacity = Startup, 0 }, true, 71_200, memory{50e3, 0, Startup}, false, false},
		"another start":        {func(a *Adaptive) { a.phase, a.capacity, a.best = Startup, 0, 1 }, false, 71_200, memory{50e3, 0, Startup}, false, false},
		"nobody knows a start": {func(a *Adaptive) { a.phase, a.capacity = Startup, 0; a.out.reset() }, false, 44_500, memory{50e3, 0, Startup}, true, true},
		"idle":                 {func(a *Adaptive) { a.out.rounds[0].idle, a.out.rounds[0].asked = true, 112_500 }, false, 0, memory{}, false, false},
		"idle, and takes long": {func(a *Adaptive) { a.out.rounds[0].idle, a.out.rounds[0].asked = true, 112_400 }, false, 80_029, memory{100e3, 100e3, Cruise}, false, false},
	} {
		a := delayed(t, 80*ms)
		a.start(0)
		a.phase, a.rate, a.capacity, a.sendGap, a.lastID, a.longest, a.step = Cruise, 100e3, 100e3, 12*ms, 7, 130*ms, 5
		a.delivers(80e3, 1e5)
		a.out.rounds[0].left = 800 * ms
		a.steps.n, a.epoch.acked, a.epoch.lost, a.epoch.counted, a.epoch.seen = 1, 5, 6, true, true
		v.change(a)
		was := *a
		a.cut(now, v.lossy, false)
		require.Zero(t, a.step, name)
		require.Equal(t, v.guessed, a.guessed, name)
		if v.rate == 0 {
			was.step = 0
			require.Equal(t, was, *a, name)
			continue
		}
		require.InDelta(t, v.rate, a.rate, 1, name)
		require.InDelta(t, v.rate/backoff, a.capacity, 1, name)
		require.Equal(t, Drain, a.phase, name)
		require.InDelta(t, 0.8, a.gain, 1e-9, "%s: of a queue of 80 ms", name)
		require.Equal(t, []time.Duration{80 * ms, now + 530*ms}, []time.Duration{a.drained, a.until.Round(time.Microsecond)}, "%s: a round trip, and 80 ms / (1 - 0.8)", name)
		require.InDelta(t, v.before.rate, a.epoch.before.rate, 1e-6, name)
		require.Equal(t, []any{v.before.capacity, v.before.phase}, []any{a.epoch.before.capacity, a.epoch.before.phase}, name)
		e := a.epoch
		e.before = memory{}
		want := epoch{on: true, lastCut: now, cutID: 7, queue: 80 * ms}
		if was.epoch.on {
			want.cuts, want.vain = 2, 1
		} else {
			require.Zero(t, a.proven, name)
		}
		require.Equal(t, want, e, name)
		require.Zero(t, a.steps, name)
		if v.doubts {
			require.Equal(t, doubt{delay: 80 * ms, sendGap: 12 * ms, last: 7, before: memory{100e3, 0, Startup}}, a.doubt, name)
		} else {
			require.Zero(t, a.doubt, name)
		}
	}
}

// TestGainOfADrain: a drain sends less the longer the queue is, by the delay or by what is in flight beyond the path itself: 0.3 to 0.8 of the capacity. What was sent until then is paid for at the rate of before.
func TestGainOfADrain(t *testing.T) {
	for _, v := range []struct {
		delay    time.Duration
		inflight int
		queue    time.Duration
		gain     float64
	}{
		{40 * ms, 0, 40 * ms, 0.8},
		{200 * ms, 0, 200 * ms, 0.5},
		{399 * ms, 0, 399 * ms, 0.3},
		{40 * ms, 25_000, 200 * ms, 0.5}, // 250 ms, of which the path has 50
		{200 * ms, 24_000, 200 * ms, 0.5},
	} {
		a := delayed(t, v.delay)
		a.start(0)
		a.longest, a.rate, a.inflight = 250*ms, 50_000, v.inflight
		a.pacer.credit = -1e5
		a.lower(100*ms, 100_000)
		require.Equal(t, -45_000.0, a.pacer.credit, "%+v", v)
		require.Equal(t, []float64{100_000, 89_000}, []float64{a.capacity, a.rate})
		require.InDelta(t, v.gain, a.gain, 1e-9, "%+v", v)
		require.Equal(t, v.queue, a.drained, "%+v", v)
		require.InDelta(t, 350*ms+time.Duration(float64(v.queue)/(1-v.gain)), a.until, 10, "%+v", v)
	}
}

// judged is a controller in cruise, on a path of 50 ms that delivers 95 % of what is asked, a minute after the last verdict on loss.
func judged(t *testing.T) *Adaptive {
	a := delayed(t, 0)
	a.start(0)
	a.queue.average = 50 * ms
	a.phase, a.rate, a.capacity, a.lastID, a.longest, a.calmSince, a.inflight = Cruise, 200e3, 200e3, 7, 60*ms, time.Minute-700*ms, 1e6
	a.delivers(190e3, 200e3)
	return a
}

// loses has so many packets be lost of 100 since the last verdict, each slot as many.
func (a *Adaptive) loses(lost int) {
	g := gathered{fates: fates{100 - lost, lost}}
	a.loss.all, a.loss.eager = g, g
}

// TestLossOfARound: what the verdict on loss does. Congestion lowers the rate to what arrived, and is remembered, so that it is taken back where the rate turns out to do nothing. A start isn't ended by loss that was there before, and a drain isn't judged.
func TestLossOfARound(t *testing.T) {
	const now = time.Minute
	inVain := func(a *Adaptive) {
		a.loss.lastLoss, a.loss.lastRate, a.before = 0.16, 400e3, memory{400e3, 410e3, Startup}
	}
	even := startSteps{n: 2} // 20 % at each rate
	even.steps[0], even.steps[1] = startStep{100e3, fates{64, 16}}, startStep{200e3, fates{64, 16}}
	for name, v := range map[string]struct {
		change   func(a *Adaptive)
		phase    Phase
		capacity float64
		before   memory
	}{
		"none":                    {func(a *Adaptive) { a.loses(0) }, Cruise, 200e3, memory{}},
		"congestion":              {func(a *Adaptive) { a.loses(20) }, Drain, 180e3, memory{200e3, 200e3, Cruise}},
		"again, at a lower rate":  {func(a *Adaptive) { a.loses(20); a.before.rate = 200e3 + 1 }, Drain, 180e3, memory{rate: 200e3 + 1}},
		"and a queue":             {func(a *Adaptive) { a.loses(20); a.queue.average = 61 * ms; a.before.rate = 1 }, Drain, 190e3, memory{}},
		"a queue":                 {func(a *Adaptive) { a.queue.average = 61 * ms; a.before.rate = 1 }, Drain, 190e3, memory{}},
		"in vain":                 {func(a *Adaptive) { a.loses(20); inVain(a) }, Startup, 410e3, memory{}},
		"not in vain":             {func(a *Adaptive) { a.loses(0); inVain(a) }, Cruise, 200e3, memory{}},
		"of a start":              {func(a *Adaptive) { a.loses(20); a.phase = Startup }, Drain, 180e3, memory{200e3, 200e3, Startup}},
		"of a start, excused":     {func(a *Adaptive) { a.loses(20); a.phase, a.steps = Startup, even }, Startup, 200e3, memory{}},
		"of cruise, no excuse":    {func(a *Adaptive) { a.loses(20); a.steps = even }, Drain, 180e3, memory{200e3, 200e3, Cruise}},
		"of a start, and a queue": {func(a *Adaptive) { a.loses(20); a.queue.average, a.phase, a.steps = 61*ms, Startup, even }, Drain, 190e3, memory{}},
		"of a drain":              {func(a *Adaptive) { a.loses(20); a.phase, a.until, a.epoch.cutID = Drain, now+1, 5 }, Drain, 200e3, memory{}},
		"of a drain, and a queue": {func(a *Adaptive) {
			a.queue.average, a.phase, a.until, a.epoch.cutID, a.before.rate = 61*ms, Drain, now+1, 5, 1
		}, Drain, 200e3, memory{rate: 1}},
		"hardly anything": {func(a *Adaptive) { a.loses(20); a.nearlyAll = nearlyAll{1000, 29_001, 1000 * 30_000} }, Drain, 190e3, memory{}},
	} {
		a := judged(t)
		a.out.rounds[0].acked = 180e3 // the rest is lost, as the path is known to lose that anyway
		v.change(a)
		was := a.loss
		a.judge(now, &round{first: 1}, 100*ms, false)
		require.Equal(t, v.phase, a.phase, name)
		require.InDelta(t, v.capacity, a.capacity, 1, name)
		require.Equal(t, v.before, a.before, name)
		require.Equal(t, strings.HasPrefix(name, "of a drain") || name == "hardly anything", was == a.loss, "%s: one verdict is enough", name)
	}
}

// TestRoundOfAStart: the rate doubles in a round trip while the link follows, or as nobody knows whether it does. Otherwise it grows to 2.2 times what was delivered, and not at all where the application leaves credit unused.
func TestRoundOfAStart(t *testing.T) {
	for name, v := range map[string]struct {
		share     float64
		cold      bool
		delivered int
		limited   bool
		rate      float64
	}{
		"follows":            {0.71, false, 0, false, 400e3},
		"cold":               {0.5, true, 0, false, 400e3},
		"doesn't":            {0.69, false, 10_000, false, 220e3},
		"not at all":         {0.69, false, 9000, false, 200e3},
		"and more than that": {0.69, false, 20_000, false, 400e3},
		"unused":             {0.95, false, 20_000, true, 200e3},
	} {
		a := judged(t)
		a.phase = Startup
		a.delivers(v.share*200e3, 200e3)
		a.judge(time.Minute, &round{first: 1, done: true, cold: v.cold, acked: v.delivered}, 100*ms, v.limited)
		require.InEpsilon(t, v.rate, a.rate, 1e-9, name)
		if v.limited {
			require.Equal(t, 190e3, a.lately.get(), name)
		} else {
			require.Zero(t, a.lately.get(), name)
		}
	}
}

// TestRoundOfADrain: what is lost and delivered of packets from behind a cut counts, and what is delivered there tells of the link where the queue stays.
func TestRoundOfADrain(t *testing.T) {
	const now = time.Minute
	for name, v := range map[string]struct {
		change   func(a *Adaptive)
		first    int64
		seen     bool
		capacity float64
		cutID    int64
		n        int // rounds that are known then
	}{
		"of before":                   {func(*Adaptive) {}, 5, false, 150e3, 5, 2},
		"of the drain":                {func(*Adaptive) {}, 6, false, 150e3, 7, 2},
		"seen by now":                 {func(a *Adaptive) { a.epoch.seen = true }, 5, false, 150e3, 7, 2},
		"as much as is known":         {func(a *Adaptive) { a.capacity = 160e3 }, 6, true, 160e3, 5, 2},
		"one round":                   {func(a *Adaptive) { a.out.n = 1 }, 6, true, 200e3, 5, 1},
		"hardly a queue":              {func(a *Adaptive) { a.queue.low = 70 * ms }, 6, true, 200e3, 5, 2},
		"of the drain, lowered again": {func(a *Adaptive) { a.epoch.again = true }, 6, true, 200e3, 5, 0},
		"of before, lowered again":    {func(a *Adaptive) { a.epoch.again = true; a.queue.low = 150*ms + 1 }, 5, false, 150e3, 5, 2},
	} {
		a := judged(t)
		a.queue.low, a.queue.average = 130*ms, 130*ms
		a.phase, a.gain, a.drained, a.until = Drain, 0.5, 80*ms, now+1
		a.epoch.on, a.epoch.cutID, a.epoch.acked, a.epoch.lost = true, 5, 100, 10
		a.delivers(150e3, 200e3)
		a.out.n, a.out.rounds[1] = 2, a.out.rounds[0]
		v.change(a)
		was := a.epoch
		a.judge(now, &round{first: v.first, acked: 200, lost: 20}, 100*ms, false)
		require.Equal(t, Drain, a.phase, name)
		require.InDelta(t, v.capacity, a.capacity, 1, name)
		require.Equal(t, v.cutID, a.epoch.cutID, name)
		require.Equal(t, v.seen, a.epoch.seen, name)
		require.Equal(t, was.again || v.cutID == 7, a.epoch.again, name)
		require.Equal(t, v.n, a.out.n, name)
		if v.first > 5 || was.seen {
			require.Equal(t, []int{300, 30}, []int{a.epoch.acked, a.epoch.lost}, name)
		} else {
			require.Equal(t, []int{100, 10}, []int{a.epoch.acked, a.epoch.lost}, name)
		}
		require.True(t, a.epoch.on, name)
	}
	a := judged(t)
	a.phase, a.until, a.epoch.on, a.inflight, a.epoch.again, a.epoch.cutID = Drain, now, true, 0, true, 7
	a.judge(now, &round{first: 1}, 100*ms, false)
	require.Equal(t, Cruise, a.phase, "it ends with the round")
}

// TestEndOfCongestion: it ends with a round without, but for a delay that lingers. What the noise was is forgotten by half where the delay is twice what is unclear.
func TestEndOfCongestion(t *testing.T) {
	for name, v := range map[string]struct {
		delay  time.Duration
		again  bool
		lostIn int
		ends   bool
		noise  time.Duration
	}{
		"none":       {0, false, 0, true, 8 * ms},
		"lost":       {0, false, 20, false, 8 * ms},
		"again":      {0, true, 0, true, 8 * ms},
		"lingers":    {36 * ms, false, 0, false, 8 * ms},
		"much of it": {36*ms + 1, false, 0, false, 4 * ms},
	} {
		a := judged(t)
		a.queue.low = 50*ms + v.delay
		a.queue.noises[0] = 8 * ms
		a.epoch = epoch{on: true, vain: 1, leapt: true, queue: v.delay, lastCut: time.Minute, counted: true, again: v.again}
		a.loses(v.lostIn)
		a.judge(time.Minute, &round{first: 1}, 100*ms, false)
		require.Equal(t, Cruise, a.phase, name)
		require.Equal(t, v.ends, !a.epoch.on, name)
		require.Equal(t, v.noise, a.queue.noise(), name)
		require.Equal(t, 1, a.out.n, "%s: no drain has ended", name)
	}
}

// TestLeapAmidCongestion: a delay that rises at once makes it the path's, or more surely so where it is more than bursts of others can make. Without congestion, or before anything is known of the link, it says nothing.
func TestLeapAmidCongestion(t *testing.T) {
	for name, v := range map[string]struct {
		on         bool
		lately     float64
		rise       time.Duration
		was        bool
		leapt, far bool
	}{
		"no rise":                {true, 1, 22 * ms, false, false, false},
		"a rise":                 {true, 1, 22*ms + 1, false, true, false},
		"as far as a few ticks":  {true, 1, 40 * ms, false, true, false},
		"far":                    {true, 1, 40*ms + 1, false, true, true},
		"no rise now":            {true, 1, 0, true, true, true},
		"a rise, and far before": {true, 1, 22*ms + 1, true, true, true},
		"no congestion":          {false, 1, 50 * ms, false, false, false},
		"nothing known":          {true, 0, 50 * ms, false, false, false},
	} {
		for i, f := range []func(a *Adaptive){
			func(a *Adaptive) { a.leapt(time.Minute) },
			func(a *Adaptive) { a.judge(time.Minute, &round{first: 1}, 100*ms, true) },
		} {
			a := judged(t)
			a.sendGap = 12 * ms
			a.recent.rise, a.recent.rose = v.rise, time.Minute
			a.lately.sample(0, v.lately)
			a.epoch.on, a.epoch.leapt, a.epoch.far = v.on, v.was, v.was
			f(a)
			require.Equal(t, []bool{v.leapt, v.far}, []bool{a.epoch.leapt, a.epoch.far}, "%s, %d", name, i)
		}
	}
}

// TestNearlyAllIsLost: three bytes of four or more, of so many packets that it isn't chance. Large ones among small ones are few.
func TestNearlyAllIsLost(t *testing.T) {
	var n nearlyAll
	require.False(t, n.lost(&round{}), "nothing")
	require.False(t, n.lost(&round{acked: 100, lost: 2200, squares: 23 * 100 * 100}), "23 packets")
	require.True(t, n.lost(&round{lost: 100, squares: 100 * 100}), "24")
	require.Zero(t, n, "and anew")
	require.False(t, n.lost(&round{acked: 600, lost: 1800, squares: 24 * 100 * 100}), "three of four")
	require.Zero(t, n)
	require.False(t, n.lost(&round{acked: 1000, lost: 4500, squares: 10*100*100 + 3*1500*1500}), "three large ones")
	require.False(t, n.lost(&round{acked: 50_000, squares: 5e6}), "many small ones that arrive")
}

// TestAskedRate: the rate at which packets were sent is theirs, also of those that were lost.
func TestAskedRate(t *testing.T) {
	require.Equal(t, 20_000.0, (&round{acked: 300, lost: 100, sending: 20 * ms}).asked())
	require.Zero(t, (&round{acked: 300}).asked())
}

// TestDeliveryOfRounds: a round's packets had left in the time between its newest and that of the round before, and the rate allowed as many as in the time that their feedback took.
func TestDeliveryOfRounds(t *testing.T) {
	var d delivery
	for i, v := range []struct {
		r    round
		want outcome
	}{
		{round{acked: 900, lost: 100, newest: 100 * ms, low: 60*ms + 1}, outcome{sent: 1000, acked: 900, through: 950, asked: 1000, took: 50 * ms, busy: true}},
		{round{acked: 1000, newest: 150 * ms, sending: 25 * ms, low: 60 * ms, idle: true}, outcome{sent: 1000, acked: 1000, through: 1000, asked: 2000, took: 50 * ms, left: 50 * ms, idle: true}},
		{round{acked: 1000}, outcome{sent: 1000, acked: 1000, through: 1000, asked: 1000, took: 50 * ms}},
		{round{acked: 1000, newest: 150 * ms}, outcome{sent: 1000, acked: 1000, through: 1000, asked: 1000, took: 50 * ms, left: 1}},
		{round{acked: 1000, newest: 180 * ms}, outcome{sent: 1000, acked: 1000, through: 1000, asked: 1000, took: 50 * ms, left: 30 * ms}},
	} {
		d.add(&v.r, 50*ms, 60*ms, 0.05)
		require.Equal(t, v.want, d.rounds[i])
	}
	d.reset()
	d.add(&round{acked: 1, newest: time.Second}, 50*ms, 60*ms, 0)
	require.Zero(t, d.rounds[0].left, "nobody knows")
}

// TestLastDelivery: the delivery is of as many of the last rounds as span a time and carry 12000 bytes, eight at most. For the share that is a time of eight batches.
func TestLastDelivery(t *testing.T) {
	var d delivery
	require.Equal(t, 1.0, d.share(time.Second))
	require.Zero(t, d.rate())
	for i := range 10 {
		through := float32(10_000 * (i + 1))
		d.rounds[d.n%deliveryRounds] = outcome{sent: 100_000, acked: through - 1, through: through, asked: 200_000, took: 75 * ms, left: time.Duration(i%2) * 50 * ms, busy: i != 8, idle: i == 7}
		d.n++
	}
	require.Equal(t, outcome{sent: 200_000, acked: 189_998, through: 190_000, asked: 400_000, took: 150 * ms, left: 125 * ms}, d.sum(150*ms))
	require.Equal(t, outcome{sent: 300_000, acked: 269_997, through: 270_000, asked: 600_000, took: 225 * ms, left: 175 * ms, idle: true}, d.sum(150*ms+1))
	require.Equal(t, outcome{sent: 100_000, acked: 99_999, through: 100_000, asked: 200_000, took: 75 * ms, left: 50 * ms, busy: true}, d.sum(75*ms))
	require.InEpsilon(t, 190_000/0.15, d.rate(), 1e-6)
	require.InEpsilon(t, 190./400, d.share(0), 1e-6)
	require.InEpsilon(t, 190./400, d.share(18*ms), 1e-6)
	require.InEpsilon(t, 270./600, d.share(20*ms), 1e-6)
	require.InEpsilon(t, 450./1200, d.share(time.Second), 1e-6, "of 400 ms at most")
	for i := range d.rounds {
		d.rounds[i].through = 2000
	}
	require.Equal(t, 450*ms, d.sum(75*ms).took, "12000 bytes")
	for i := range d.rounds {
		d.rounds[i].through = 1
	}
	require.Equal(t, 600*ms, d.sum(75*ms).took, "there are no more")
}

// TestCapacityOfTheLink: it is what was delivered. Where the application used less than the rate it is that, less by how much longer the delivery took than the sending, and by what was lost if that is congestion, unless there was a queue all the time that grew or overflowed. With loss as the only sign of congestion it is what arrived.
func TestCapacityOfTheLink(t *testing.T) {
	for name, v := range map[string]struct {
		change        func(o *outcome)
		lossy, tested bool
		apart         time.Duration
		rate          float64
	}{
		"delivered":                    {func(o *outcome) { o.idle = false }, true, false, 0, 19_200},
		"arrived":                      {func(o *outcome) { o.idle = false }, true, true, 0, 18_000},
		"idle":                         {func(*outcome) {}, false, false, 0, 80_000},
		"idle, and tested":             {func(*outcome) {}, false, true, 0, 80_000},
		"idle, lossy":                  {func(*outcome) {}, true, false, 0, 76_800},
		"idle, slower":                 {func(o *outcome) { o.left = 500 * ms }, false, false, 0, 40_000},
		"idle, much slower":            {func(o *outcome) { o.left = 100 * ms }, false, false, 0, 19_200},
		"idle, faster":                 {func(o *outcome) { o.left = 2 * time.Second }, false, false, 0, 80_000},
		"idle, a queue":                {func(o *outcome) { o.busy = true }, false, false, 0, 80_000},
		"idle, a queue that is full":   {func(o *outcome) { o.busy, o.through = true, 18_900 }, false, false, 0, 18_900},
		"idle, of few packets":         {func(o *outcome) { o.busy, o.sent, o.through = true, 11_999, 11_000 }, false, false, 0, 80_000},
		"idle, a queue that grows":     {func(o *outcome) { o.busy, o.left = true, 919*ms }, false, false, time.Second / 60, 19_200},
		"idle, a queue that hardly":    {func(o *outcome) { o.busy, o.left = true, 921*ms }, false, false, time.Second / 60, 73_680},
		"idle, of many bursts":         {func(o *outcome) { o.busy, o.left = true, 961*ms }, false, false, ms, 19_200},
		"idle, of many, that hardly":   {func(o *outcome) { o.busy, o.left = true, 963*ms }, false, false, ms, 77_040},
		"idle, of few bursts, a queue": {func(o *outcome) { o.busy, o.left = true, 919*ms }, false, false, time.Second, 19_200},
	} {
		var d delivery
		d.n, d.rounds[0] = 1, outcome{sent: 20_000, acked: 18_000, through: 19_200, asked: 80_000, took: time.Second, left: time.Second, idle: true}
		v.change(&d.rounds[0])
		rate, idle := d.capacity(v.lossy, v.tested, v.apart)
		require.InDelta(t, v.rate, rate, 1, name)
		require.Equal(t, d.rounds[0].idle, idle, name)
	}
	var short delivery
	short.n, short.rounds[0] = 1, outcome{sent: 20_000, acked: 18_000, through: 19_200, asked: 80_000, took: 500 * ms, left: 250 * ms, idle: true}
	rate, _ := short.capacity(false, false, 0)
	require.InDelta(t, 80_000, rate, 1, "half of what there was to send in half a second")
	var none delivery
	rate, idle := none.capacity(true, true, 0)
	require.Zero(t, rate)
	require.False(t, idle)
}

// TestWhatARoundLeaves: the longest round trip time, its delivery unless that can't be timed, and whether the application left credit unused, which it doesn't if as much is in flight as may be, or the peer has no room.
func TestWhatARoundLeaves(t *testing.T) {
	for name, v := range map[string]struct {
		unused      float64
		full, wants bool
		cold        bool
		low, high   time.Duration
		idle        int64
		longest     time.Duration
	}{
		"all used":           {10, false, false, false, 40 * ms, 60 * ms, -1, 60 * ms},
		"unused":             {11, false, false, false, 40 * ms, 60 * ms, 7, 60 * ms},
		"full":               {11, true, false, false, 40 * ms, 60 * ms, -1, 60 * ms},
		"the peer's":         {11, false, true, false, 40 * ms, 60 * ms, -1, 60 * ms},
		"cold":               {10, false, false, true, 40 * ms, 60 * ms, -1, 60 * ms},
		"of a shorter way":   {10, false, false, false, 40 * ms, 0, -1, 40 * ms},
		"nobody knows a way": {10, false, false, false, 0, 0, -1, 90 * ms},
	} {
		a := adaptive(t)
		a.start(0)
		a.lastID, a.longest, a.pacer.last = 7, 90*ms, time.Second
		a.round.begin(time.Second-50*ms, 7, v.cold)
		a.round.done, a.round.low, a.round.high, a.round.acked = true, v.low, v.high, 1000
		a.pacer.accrued, a.pacer.unused, a.full, a.wants = 100, v.unused, v.full, v.wants
		a.lastFeedback, a.out.n = time.Second, 1
		a.settle(time.Second)
		require.Equal(t, v.idle, a.idle, name)
		require.Equal(t, v.longest, a.longest, name)
		if v.cold {
			require.Zero(t, a.out.n, name)
		} else {
			require.Equal(t, 2, a.out.n, name)
		}
	}
}
