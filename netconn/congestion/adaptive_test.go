package congestion

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAdaptiveConfig(t *testing.T) {
	for _, cfg := range []AdaptiveConfig{
		{MinRate: 50_000}, {MaxRate: 10_000}, {MinRate: -1}, {TargetDelay: -1}, {TargetDelay: 100*time.Microsecond - 1},
		{MaxBurst: -1}, {LossTolerance: 0.9}, {MaxPacket: 10}, {MaxPacket: 1 << 20},
	} {
		_, err := NewAdaptive(cfg)
		require.ErrorIs(t, err, ErrConfig, "%+v", cfg)
	}
	_, err := NewAdaptive(AdaptiveConfig{TargetDelay: 100 * time.Microsecond})
	require.NoError(t, err)
	a, err := NewAdaptive(AdaptiveConfig{InitialRate: 8000, LossTolerance: -1})
	require.NoError(t, err)
	require.Equal(t, 8000.0, a.Rate())
	require.Equal(t, Startup, a.Phase())
	require.Zero(t, a.loss.tolerance)
}

func TestAllocs(t *testing.T) {
	for _, c := range []Controller{adaptive(t), NewGoodBad(0), NewTokenBucket(100_000)} {
		var id int64
		var now time.Duration
		require.Zero(t, testing.AllocsPerRun(2000, func() {
			now += 10 * time.Millisecond
			c.Tick(now)
			for range 3 {
				c.OnSent(now, id, 1000)
				id++
			}
			if id > 12 {
				c.OnLost(now, id-12, 1000)
				c.OnAck(now, id-11, 1000, 50*time.Millisecond)
				c.OnAck(now, id-10, 1000, 40*time.Millisecond)
			}
			c.Budget(now)
			c.NextDeadline(now)
		}), "%T", c)
	}
}

// NextDeadline promises a budget, not earlier and not much later.
func TestNextDeadline(t *testing.T) {
	for _, c := range []Controller{adaptive(t), NewGoodBad(0), NewTokenBucket(10_000)} {
		now := time.Second
		c.Tick(now)
		var id int64
		for range 50 {
			for c.Budget(now) > 0 {
				_, ok := c.NextDeadline(now)
				require.False(t, ok)
				c.OnSent(now, id, 1000)
				c.OnAck(now, id, 1000, 50*time.Millisecond)
				id++
			}
			at, ok := c.NextDeadline(now)
			require.True(t, ok, "%T", c)
			require.Greater(t, at, now)
			if _, bucket := c.(*TokenBucket); bucket {
				for now+b30 < at {
					now += b30
					c.Tick(now)
				}
			}
			now = at
			c.Tick(now)
			require.Positive(t, c.Budget(now), "%T", c)
		}
	}
}

// TestNeverStarves: whatever has happened, a packet may leave within two seconds and a tick.
func TestNeverStarves(t *testing.T) {
	for seed := range uint64(50) {
		a := adaptive(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		now, id, settled := time.Duration(0), int64(0), int64(0)
		last := now
		for now < 2*time.Minute {
			now += time.Duration(rng.IntN(40)) * time.Millisecond
			switch rng.IntN(200) {
			case 0:
				now += time.Duration(rng.IntN(10)) * time.Second // the process stood still
				last = now
			case 1, 2, 3:
				rtt := time.Duration(1+rng.IntN(3000)) * time.Millisecond
				for ; settled < id; settled++ {
					if rng.IntN(2) == 0 {
						a.OnAck(now, settled, 1200, rtt)
					} else {
						a.OnLost(now, settled, 1200)
					}
				}
			}
			a.Tick(now)
			if a.Budget(now) > 0 {
				last = now
				for range rng.IntN(20) { // resends and probes may not ask
					a.OnSent(now, id, 1200)
					id++
				}
			}
			require.LessOrEqual(t, now-last, 2*time.Second+50*time.Millisecond, "seed %d at %v", seed, now)
		}
	}
}

const b30 = time.Second / 30

// FuzzControllers feeds nonsense to controllers, which must stay within their bounds.
func FuzzControllers(f *testing.F) {
	f.Add([]byte{0, 10, 0, 10, 1, 200, 2, 3, 3, 50, 4, 0})
	f.Add([]byte("any bytes will do, as each pair of them is a call"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		a, err := NewAdaptive(AdaptiveConfig{})
		require.NoError(t, err)
		for _, c := range []Controller{a, NewGoodBad(0), NewTokenBucket(0)} {
			var now time.Duration
			var id, acked int64
			for i := 0; i+1 < len(ops); i += 2 {
				v := int(ops[i+1])
				switch ops[i] % 6 {
				case 0:
					c.OnSent(now, id, v*8)
					id++
				case 1:
					if acked < id {
						c.OnAck(now, acked, v*8, time.Duration(v)*time.Millisecond)
						acked++
					}
				case 2:
					if acked < id {
						c.OnLost(now, acked, v*8)
						acked++
					}
				case 3:
					now += time.Duration(v*v) * 100 * time.Microsecond
				case 4:
					now += time.Duration(v) * time.Second
				case 5:
					c.Tick(now)
				}
				rate := c.Rate()
				require.False(t, math.IsNaN(rate) || rate < 1 || rate > 1.25e9, "%T rate %v", c, rate)
				c.Budget(now)
				if at, ok := c.NextDeadline(now); ok {
					require.GreaterOrEqual(t, at, now, "%T", c)
				}
			}
		}
	})
}

func BenchmarkAdaptive(b *testing.B) {
	a := adaptive(b)
	var id int64
	var now time.Duration
	b.ReportAllocs()
	for b.Loop() {
		now += time.Millisecond
		a.OnSent(now, id, 1000)
		id++
		if id > 50 {
			a.OnAck(now, id-50, 1000, 50*time.Millisecond)
		}
		if id%16 == 0 {
			a.Tick(now)
		}
		a.Budget(now)
	}
}

// TestSentRates: each packet has the rate it was sent at, also where ids pass 32 bits and where the rate has changed more often than is
// remembered.
func TestSentRates(t *testing.T) {
	var s sentRates
	const first = 1<<32 - 100
	for i := range int64(200) {
		s.from(first+i, float64(1000+i/20))
		if i >= 100 {
			require.Equal(t, float64(1000+(i-100)/20), s.of(first+i-100))
		}
	}
	for i := range int64(100) {
		s.from(first+200+i, float64(2000+i))
	}
	require.Equal(t, 1005.0, s.of(first+100))
	require.Equal(t, 2099.0, s.of(first+299), "the newest rate is the newest packets'")
	s.from(first+300, 3000)
	require.Equal(t, 3000.0, s.of(first+300))

	var few sentRates
	for i := range int64(len(few.since) + 1) {
		few.from(i, float64(i+1))
	}
	require.Equal(t, 1.0, few.of(0))
	require.Equal(t, 9.0, few.of(8))
	few.from(17, 100)
	require.Equal(t, 17.0, few.of(16), "what feedback has come of makes room")
	require.Equal(t, 100.0, few.of(17))
}

// running is a controller of 30 kB/s that was called last at 10 s, ticks each 10 ms, and has had feedback each 20 ms.
func running(t *testing.T) *Adaptive {
	a := adaptive(t)
	a.start(0)
	const now = 10 * time.Second
	a.lastCall, a.lastTick, a.lastSent, a.lastFeedback, a.silentSince, a.awaited, a.pacer.last = now, now, now, now, now, now, now
	a.tickGap, a.ackGap, a.longest, a.lastID, a.deaf = 10*ms, 20*ms, 100*ms, 7, 3
	return a
}

// TestRoundsBegin: a round begins with the feedback before a packet, or with the packet if nothing was in flight for longer than the rate and ticks ask for, or if feedback doesn't tell when it begins. Only in the first case what is delivered can be timed.
func TestRoundsBegin(t *testing.T) {
	const before, now = 10 * time.Second, 10*time.Second + 40*ms // 300 bytes take 10 ms, and ticks as much; twice that
	for name, v := range map[string]struct {
		change func(a *Adaptive)
		at     time.Duration
		start  time.Duration
		cold   bool
		silent time.Duration
	}{
		"behind feedback":         {func(*Adaptive) {}, now, before, false, now},
		"of the first packet":     {func(a *Adaptive) { a.lastFeedback = 0 }, now, now, true, now},
		"after a pause":           {func(a *Adaptive) { a.lastFeedback-- }, now, now, true, now},
		"of what says nothing":    {func(a *Adaptive) { a.deaf = 7 }, now, before, true, now},
		"of a process that slept": {func(a *Adaptive) { a.late = now }, now, before, true, now},
		"of a peer that slept":    {func(a *Adaptive) { a.held = now }, now, before, true, now},
		"in flight":               {func(a *Adaptive) { a.inflight = 1 }, now, now, true, before},
		"open":                    {func(a *Adaptive) { a.round.begin(before-1, 4, false) }, now, before - 1, false, now},
		"open, in flight":         {func(a *Adaptive) { a.round.begin(before-1, 4, false); a.inflight = 1 }, now, before - 1, false, before},
	} {
		a := running(t)
		v.change(a)
		end := int64(8)
		if a.round.open {
			end = 4
		}
		inflight := a.inflight
		a.OnSent(v.at, 8, 300)
		require.Equal(t, round{open: true, cold: v.cold, start: v.start, end: end}, a.round, name)
		require.Equal(t, []time.Duration{v.silent, v.at}, []time.Duration{a.silentSince, a.lastSent}, name)
		if v.silent == v.at {
			require.Equal(t, v.at+100*ms, a.awaited, "%s: feedback comes a round trip later", name)
		}
		require.Equal(t, inflight+300, a.inflight, name)
		require.Equal(t, int64(8), a.lastID, name)
	}
}

// TestSendGap: bursts are a time apart that is averaged over eight, 100 ms at most. What is sent within a millisecond is one.
func TestSendGap(t *testing.T) {
	for gap, average := range map[time.Duration]time.Duration{ms: 20 * ms, ms + 1: 20*ms + (1-19*ms)/8, 60 * ms: 25 * ms, time.Minute: 30 * ms} {
		a := running(t)
		a.sendGap = 20 * ms
		a.lastSent -= gap
		a.OnSent(10*time.Second, 8, 100)
		require.Equal(t, average, a.sendGap, "%v", gap)
	}
}

// TestLateCalls: a process that comes later than three ticks takes nothing of what it finds for timed, and one that has slept for 250 ms and four ticks takes all that is in flight for old. Each call finds that out.
func TestLateCalls(t *testing.T) {
	const now = 10 * time.Second
	for i, call := range []func(a *Adaptive, now time.Duration){
		func(a *Adaptive, now time.Duration) { a.Tick(now) },
		func(a *Adaptive, now time.Duration) { a.OnSent(now, 8, 100) },
		func(a *Adaptive, now time.Duration) { a.OnAck(now, 6, 100, 50*ms) },
		func(a *Adaptive, now time.Duration) { a.OnLost(now, 6, 100) },
	} {
		for _, v := range []struct {
			tick, gap  time.Duration
			late, deaf bool
			first      bool // no call before
		}{
			{10 * ms, 40 * ms, false, false, false},
			{10 * ms, 40*ms + 1, true, false, false},
			{10 * ms, 250 * ms, true, false, false},
			{10 * ms, 250*ms + 1, true, true, false},
			{100 * ms, 310 * ms, false, false, false},
			{100 * ms, 310*ms + 1, true, false, false},
			{100 * ms, 400 * ms, true, false, false},
			{100 * ms, 400*ms + 1, true, true, false},
			{0, 250 * ms, false, false, false},
			{0, 250*ms + 1, true, true, false},
			{0, 300 * ms, false, false, true},
		} {
			a := running(t)
			a.tickGap, a.awaited = v.tick, now+time.Second
			a.inflight = 1000
			a.round.begin(now, 7, false)
			a.round.acked = 1
			if v.first {
				a.lastCall = 0
			}
			at := now + v.gap
			call(a, at)
			require.Equal(t, v.late, a.isLate(at), "%d, %+v", i, v)
			require.Equal(t, v.late, a.isStale(at), "%d, %+v", i, v)
			require.False(t, a.isLate(at+1) || a.isStale(at+1))
			require.Equal(t, v.deaf, a.deaf == 7, "%d, %+v", i, v)
			require.Equal(t, at, a.lastCall, "%d, %+v", i, v)
			require.Equal(t, v.late, a.round.acked == 0, "%d, %+v", i, v)
			if v.late {
				require.Equal(t, []time.Duration{at, at}, []time.Duration{a.awaited, a.late}, "%d, %+v", i, v)
			}
			if v.late && !v.deaf {
				require.Equal(t, at, a.pacer.last, "%d, %+v: there is credit for that time", i, v)
				require.Zero(t, a.pacer.accrued, "%d, %+v: what was left of it says nothing", i, v)
			}
		}
	}
}

// TestHeldFeedback: feedback that comes long after it should have, by six times what is usual and 10 ms, has waited for the peer or the path, and says nothing. What comes next counts.
func TestHeldFeedback(t *testing.T) {
	const awaited = 10 * time.Second
	for name, v := range map[string]struct {
		change func(a *Adaptive)
		at     time.Duration
		held   bool
	}{
		"in time":             {func(*Adaptive) {}, awaited + 130*ms, false},
		"late":                {func(*Adaptive) {}, awaited + 130*ms + 1, true},
		"nothing is usual":    {func(a *Adaptive) { a.ackGap = 0 }, awaited + time.Second, false},
		"this one slept":      {func(a *Adaptive) { a.late = awaited + 131*ms }, awaited + 131*ms, false},
		"again":               {func(a *Adaptive) { a.held = awaited }, awaited + 131*ms, false},
		"again, and long ago": {func(a *Adaptive) { a.held = awaited - 1 }, awaited + 131*ms, true},
	} {
		a := running(t)
		a.lastCall = v.at
		v.change(a)
		a.round.begin(awaited, 9, false)
		a.round.acked, a.inflight = 1, 1000
		gap := a.ackGap
		a.OnAck(v.at, 6, 100, 50*ms)
		stale := v.held || name == "this one slept"
		require.Equal(t, v.held, a.held == v.at, name)
		require.Equal(t, stale, a.isStale(v.at), name)
		require.Equal(t, 900, a.inflight, name)
		require.Equal(t, []time.Duration{v.at, v.at, v.at}, []time.Duration{a.lastFeedback, a.silentSince, a.awaited}, name)
		if stale {
			require.Equal(t, gap, a.ackGap, name)
			require.Zero(t, a.recent.last, "%s: its time says nothing", name)
		} else {
			require.Equal(t, smooth(gap, v.at-awaited), a.ackGap, name)
			require.Equal(t, 50*ms, a.recent.last, name)
		}
		require.Equal(t, v.held, !a.round.open, name)
		a.OnAck(v.at+1, 7, 100, 50*ms)
		require.False(t, a.isStale(v.at+1), name)
	}
}

// TestWhatFeedbackCounts: packets from behind those that say nothing, with when they left and at which rate. The round is done with its last one.
func TestWhatFeedbackCounts(t *testing.T) {
	const now = 10*time.Second + 20*ms
	a := running(t)
	a.rates.from(0, 10_000)
	a.inflight = 2000
	a.doubt = doubt{delay: ms, last: 4}
	a.round.begin(now-20*ms, 6, false)
	a.OnAck(now, 3, 100, 50*ms)
	require.Equal(t, round{open: true, start: now - 20*ms, end: 6}, a.round, "it left before")
	require.Equal(t, 50*ms, a.recent.last, "but when it came does")
	require.Zero(t, a.loss.slot)
	a.OnAck(now, 4, 200, 40*ms)
	want := round{open: true, start: now - 20*ms, end: 6, low: 40 * ms, high: 40 * ms, acked: 200, packets: 1, squares: 40_000, delivered: 1, first: 4, sending: 20 * ms, newest: now - 40*ms}
	require.Equal(t, want, a.round)
	a.OnLost(now, 5, 300)
	want.lost, want.packets, want.squares, want.sending = 300, 2, 130_000, 50*ms
	require.Equal(t, want, a.round)
	a.OnAck(now, 6, 100, 60*ms)
	want.acked, want.packets, want.squares, want.sending, want.delivered, want.high, want.newest, want.done = 300, 3, 140_000, 60*ms, 2, 60*ms, now-60*ms, true
	require.Equal(t, want, a.round)
	a.OnAck(now, 7, 100, 0)
	want.acked, want.packets, want.squares, want.sending, want.delivered = 400, 4, 150_000, 70*ms, 3
	require.Equal(t, want, a.round, "without a round trip time it only counts")
	require.Equal(t, fates{3, 1}, a.loss.slot)
	require.Equal(t, fates{3, 1}, a.steps.steps[0].fates)
	require.Equal(t, 1200, a.inflight)
	require.Equal(t, 60*ms, a.recent.last)
	require.Equal(t, doubt{delay: ms, last: 4, low: 40 * ms, packets: 2}, a.doubt, "also of packets that say nothing else")
	a.OnLost(now, 8, 5000)
	require.Zero(t, a.inflight)
}

// TestStepsAreOfTheRate: the fates of a start are those of packets that left behind the last credit that was unused.
func TestStepsAreOfTheRate(t *testing.T) {
	for _, v := range []struct {
		phase  Phase
		idle   int64
		counts bool
	}{{Startup, 4, true}, {Startup, 5, false}, {Cruise, 4, false}, {Cruise, 5, false}} {
		a := running(t)
		a.phase, a.idle = v.phase, v.idle
		a.OnAck(10*time.Second, 5, 100, 50*ms)
		require.Zero(t, a.round.sending, "nobody knows the rate")
		a.OnLost(10*time.Second, 5, 100)
		if v.counts {
			require.Equal(t, []startStep{{0, fates{1, 1}}}, a.steps.steps[:a.steps.n])
		} else {
			require.Zero(t, a.steps, "%+v", v)
		}
	}
}

// TestAckGap: feedback is a time apart that is averaged over eight, a second at most.
func TestAckGap(t *testing.T) {
	for _, v := range [][3]time.Duration{{0, 20 * ms, 20 * ms}, {0, time.Hour, time.Second}, {20 * ms, 100 * ms, 30 * ms}, {20 * ms, 0, 20 * ms}} {
		a := running(t)
		a.ackGap, a.tickGap = v[0], 0
		at := 10*time.Second + v[1]
		a.lastCall, a.awaited = at, at
		a.OnAck(at, 5, 100, 50*ms)
		require.Equal(t, v[2], a.ackGap)
	}
	a := running(t)
	a.ackGap, a.lastFeedback = 0, 0
	a.OnAck(10*time.Second, 5, 100, 50*ms)
	require.Zero(t, a.ackGap, "the first feedback")
}

// TestWayBack: what acks wait on their way back is no queue of ours. The round trip time without it isn't below the base, as that wait is known to a tick, and where it is far below, what was said is wrong.
func TestWayBack(t *testing.T) {
	for _, v := range []struct{ base, back, rtt, there time.Duration }{
		{100 * ms, 0, 120 * ms, 120 * ms},
		{100 * ms, 30 * ms, 200 * ms, 170 * ms},
		{100 * ms, 30 * ms, 120 * ms, 100 * ms},
		{100 * ms, 30 * ms, 90 * ms, 90 * ms},
		{100 * ms, 30 * ms, 90*ms - 1, 90*ms - 1},
		{100 * ms, 70 * ms, 130*ms - 1, 130*ms - 1},
		{100 * ms, 70 * ms, 130 * ms, 100 * ms},
		{100 * ms, 30 * ms, 0, 0},
		{0, 30 * ms, 50 * ms, 20 * ms},
		{0, 30 * ms, 30 * ms, 30 * ms},
		{0, 30 * ms, 20 * ms, 20 * ms},
	} {
		a := adaptive(t)
		if v.base > 0 {
			a.queue.base.set(0, v.base)
		}
		if a.OnReturn(0); v.back > 0 {
			a.OnReturn(v.back + 10*ms)
		}
		require.Equal(t, v.there, a.there(v.rtt), "%+v", v)
		if v.base > 0 {
			require.Equal(t, v.base+v.back, a.trip())
		} else {
			require.Zero(t, a.trip())
		}
	}
}

// TestSilenceHalvesTheRate: when nothing is heard of what is in flight for longer than feedback takes, the rate halves, down to where it began, again and again. What is heard then says nothing of the path.
func TestSilenceHalvesTheRate(t *testing.T) {
	const at = 10 * time.Second
	for name, v := range map[string]struct {
		longest, ackGap, after time.Duration
		inflight               int
		silence                bool
	}{
		"nobody knows":         {0, 20 * ms, 4 * time.Second, 1, false},
		"nobody knew":          {0, 20 * ms, 4*time.Second + 1, 1, true},
		"not yet":              {100 * ms, 20 * ms, 500 * ms, 1, false},
		"a round trip":         {100 * ms, 20 * ms, 500*ms + 1, 1, true},
		"nothing in flight":    {100 * ms, 20 * ms, time.Minute, 0, false},
		"acks are seldom":      {100 * ms, 300 * ms, 700 * ms, 1, false},
		"acks are late":        {100 * ms, 300 * ms, 700*ms + 1, 1, true},
		"not for four seconds": {10 * time.Second, 20 * ms, 4 * time.Second, 1, false},
		"four seconds":         {10 * time.Second, 20 * ms, 4*time.Second + 1, 1, true},
	} {
		a := running(t)
		a.longest, a.ackGap, a.inflight, a.phase, a.rate, a.capacity, a.step, a.before, a.epoch.on = v.longest, v.ackGap, v.inflight, Cruise, 100e3, 1, 2, memory{rate: 3}, true
		a.out.n, a.loss.slot.acked = 1, 5
		now := at + v.after
		a.lastCall = now
		a.Tick(now)
		require.Equal(t, v.silence, a.silenced, name)
		if !v.silence {
			require.Equal(t, 100e3, a.rate, name)
			continue
		}
		require.Equal(t, memory{50e3, 0, Startup}, memory{a.rate, a.capacity, a.phase}, name)
		require.Zero(t, a.step, name)
		require.Zero(t, a.before, name)
		require.Zero(t, a.out.n, name)
		require.Zero(t, a.loss.slot, name)
		require.False(t, a.epoch.on, name)
		require.Equal(t, []int64{7, 7}, []int64{a.deaf, a.lastID}, name)
		for _, rate := range []float64{30e3, 30e3} {
			now += v.after
			a.lastCall = now
			a.Tick(now)
			require.Equal(t, rate, a.rate, name)
		}
		a.lastID = 9
		a.OnAck(now, 8, 1, 50*ms)
		require.False(t, a.silenced, name)
		require.Equal(t, int64(9), a.deaf, "%s: nor what was sent meanwhile", name)
	}
	a := running(t)
	a.inflight, a.rate, a.lastCall = 1, 10e3, 11*time.Second
	a.Tick(11 * time.Second)
	require.Equal(t, 10e3, a.rate, "a rate that is below that stays")
}

// TestTickOfADrain: a tick ends a drain, and has credit for the time until then at the rate of then.
func TestTickOfADrain(t *testing.T) {
	a := running(t)
	a.phase, a.capacity, a.gain, a.rate, a.pacer.credit = Drain, 10e3, 0.5, 100e3, -1000
	require.Equal(t, 5000.0, a.Rate())
	a.Tick(10*time.Second + 10*ms)
	require.Equal(t, Cruise, a.phase)
	require.Equal(t, []time.Duration{10 * ms, 10*time.Second + 10*ms}, []time.Duration{a.tickGap, a.lastTick})
	require.InDelta(t, -950, a.pacer.credit, 1e-6)
	a.Tick(10*time.Second + 28*ms)
	require.Equal(t, []time.Duration{11 * ms, 10*time.Second + 28*ms}, []time.Duration{a.tickGap, a.lastTick})
	require.InDelta(t, 850, a.pacer.credit, 1e-6)
	a.Tick(10*time.Second + 28*ms)
	require.Equal(t, 11*ms, a.tickGap, "twice at one time is one tick")
}

// TestCreditOfTicks: one and a half ticks' worth may gather, of 10 ms at least and MaxBurst at most, or of how far apart ticks always are; and two packets.
func TestCreditOfTicks(t *testing.T) {
	for _, v := range []struct {
		rate          float64
		tickGap, each time.Duration
		limit         float64
	}{
		{1e6, 20 * ms, 0, 30e3},
		{1e6, ms, 0, 10e3},
		{1e6, 200 * ms, 0, 100e3},
		{1e6, 200 * ms, 160 * ms, 240e3},
		{1e6, 200 * ms, 400 * ms, 300e3},
		{10e3, 20 * ms, 0, 2400},
	} {
		a := adaptive(t)
		a.rate, a.tickGap = v.rate, v.tickGap
		for range 3 {
			a.ticks.add(v.each, false)
		}
		require.InDelta(t, v.limit, a.creditLimit(), 1e-6, "%+v", v)
	}
}

// TestRoomInFlight: half more than the rate asks for in a round trip may be in flight, and four packets. Beyond that one packet leaves now and then, whose ack tells what became of the others.
func TestRoomInFlight(t *testing.T) {
	const now = 10 * time.Second
	a := running(t)
	a.rate, a.longest, a.sendGap, a.pacer.credit = 100e3, 80*ms, 20*ms, 1e6
	const window = 15_000 + 4800
	require.Equal(t, window, a.window())
	a.inflight = window - 1
	require.Equal(t, 1, a.Budget(now))
	require.False(t, a.full)
	a.inflight = window
	require.Zero(t, a.Budget(now))
	require.True(t, a.full, "that leaves credit unused as well")
	at, ok := a.NextDeadline(now)
	require.True(t, ok)
	require.Equal(t, now+a.curiosity()+1, at)
	a.longest = 0
	require.Equal(t, int(a.creditLimit()), a.Budget(now+time.Second), "nobody knows how long a round trip is")

	for name, v := range map[string]struct {
		minRate               int
		longest, ackGap, base time.Duration
		waits                 time.Duration
	}{
		"half of what acks take": {4000, 600 * ms, 0, 300 * ms, 500 * ms},
		"as they are seldom":     {4000, 600 * ms, 300 * ms, 300 * ms, 600 * ms},
		"or a round trip":        {4000, 600 * ms, 300 * ms, 150 * ms, 550 * ms},
		"MinRate":                {2000, 600 * ms, 300 * ms, 150 * ms, 600 * ms},
	} {
		a := running(t)
		a.cfg.MinRate, a.longest, a.ackGap, a.inflight = v.minRate, v.longest, v.ackGap, 1e6
		a.queue.base.set(0, v.base)
		require.Zero(t, a.Budget(now+v.waits), name)
		at, ok := a.NextDeadline(now + v.waits)
		require.True(t, ok, name)
		require.Equal(t, now+v.waits+1, at, name)
		require.Equal(t, 1200, a.Budget(at), name)
		_, ok = a.NextDeadline(at)
		require.False(t, ok, name)
	}
	a = running(t)
	a.pacer.credit, a.inflight = -300, 1
	at, ok = a.NextDeadline(now)
	require.True(t, ok)
	require.Equal(t, now+10*ms+time.Microsecond, at, "a debt of 300 bytes")
	a.pacer.credit = 0
	at, ok = a.NextDeadline(now)
	require.True(t, ok)
	require.Equal(t, now+time.Microsecond, at)
}

// TestFirstCall: time begins with the first call, whichever that is: there is no credit for what was before. A packet is paid for with what was there when it left.
func TestFirstCall(t *testing.T) {
	for i, call := range []func(a *Adaptive){
		func(a *Adaptive) { a.Tick(time.Hour) },
		func(a *Adaptive) { a.OnSent(time.Hour, 0, 0) },
		func(a *Adaptive) { a.Budget(time.Hour) },
	} {
		a := adaptive(t)
		call(a)
		require.Equal(t, []time.Duration{time.Hour, time.Hour, time.Hour}, []time.Duration{a.pacer.last, a.lastTick, a.lastSent}, "%d", i)
		require.Equal(t, a.creditLimit(), a.pacer.credit, "%d", i)
		require.Zero(t, a.tickGap, "%d", i)
	}
	a := running(t)
	a.pacer.credit = 2400
	a.OnSent(10*time.Second+10*ms, 8, 1000)
	require.Equal(t, 10*time.Second+10*ms, a.pacer.last)
	require.InDelta(t, 2400-1000, a.pacer.credit, 1e-9, "no more than two packets were left")
}

// TestFeedbackEndsARound: the round that is over is judged before what comes next counts.
func TestFeedbackEndsARound(t *testing.T) {
	a := running(t)
	a.inflight = 1000
	a.round.begin(10*time.Second-50*ms, 4, false)
	a.round.done, a.round.packets, a.round.acked, a.round.low, a.round.high = true, 1, 500, 40*ms, 40*ms
	a.OnAck(10*time.Second+20*ms, 6, 100, 50*ms)
	require.Equal(t, 1, a.out.n)
	require.Equal(t, float32(500), a.out.rounds[0].acked)
	require.Equal(t, 100, a.round.acked)
}
