package congestion

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// drive ticks a controller at 100 Hz for a time, with one round trip time all along.
func drive(g *GoodBad, now *time.Duration, rtt, d time.Duration) {
	for end := *now + d; *now < end; {
		*now += 10 * time.Millisecond
		if g.Budget(*now) > 0 {
			g.OnSent(*now, 0, 100)
		}
		g.OnAck(*now, 0, 100, rtt)
		g.Tick(*now)
	}
}

func TestGoodBad(t *testing.T) {
	const fine, bad = 50 * time.Millisecond, 400 * time.Millisecond
	g := NewGoodBad(1000)
	now := time.Duration(0)
	g.Tick(now)
	require.False(t, g.Good())
	require.Equal(t, BadInterval, g.SendInterval())
	require.Equal(t, 10_000.0, g.Rate())

	drive(g, &now, fine, 3900*time.Millisecond)
	require.False(t, g.Good(), "the first penalty is 4 s")
	drive(g, &now, fine, 200*time.Millisecond)
	require.True(t, g.Good())
	require.Equal(t, GoodInterval, g.SendInterval())

	for _, penalty := range []time.Duration{8, 16, 32, 60, 60} {
		drive(g, &now, bad, 500*time.Millisecond)
		require.False(t, g.Good())
		require.Equal(t, penalty*time.Second, g.Penalty(), "doubled, at most 60 s")
		drive(g, &now, fine, g.Penalty()+time.Second)
		require.True(t, g.Good())
	}
	for _, penalty := range []time.Duration{30_000, 15_000, 7500, 3750, 1875, 1000, 1000} {
		drive(g, &now, fine, 10*time.Second+10*time.Millisecond)
		require.Equal(t, penalty*time.Millisecond, g.Penalty(), "halved, at least 1 s")
	}
	drive(g, &now, bad, 500*time.Millisecond)
	require.False(t, g.Good())
	require.Equal(t, time.Second, g.Penalty(), "good for more than 10 s: not doubled")
}

// TestGoodBadClockJumps: a time without ticks, as when the process stood still or the clock was set, isn't a time of good conditions. It counts a second at most.
func TestGoodBadClockJumps(t *testing.T) {
	const fine, bad = 50 * time.Millisecond, 400 * time.Millisecond
	g := NewGoodBad(1000)
	now := time.Duration(0)
	drive(g, &now, fine, time.Second)
	now += time.Hour
	g.Tick(now)
	require.False(t, g.Good(), "of 4 s there were 2")
	drive(g, &now, fine, 1900*time.Millisecond)
	require.False(t, g.Good())
	drive(g, &now, fine, 200*time.Millisecond)
	require.True(t, g.Good())

	now += time.Hour
	g.Tick(now)
	require.Equal(t, InitialPenalty, g.Penalty(), "10 s of good mode would halve it")
	drive(g, &now, bad, 500*time.Millisecond)
	require.False(t, g.Good())
	require.Equal(t, 2*InitialPenalty, g.Penalty(), "good mode was short")
}

// TestGoodBadWithoutAcks: a path that nothing comes back from isn't a good one.
func TestGoodBadWithoutAcks(t *testing.T) {
	g := NewGoodBad(1000)
	now := time.Duration(0)
	send := func(d time.Duration) {
		for end := now + d; now < end; now += 10 * time.Millisecond {
			if g.Budget(now) > 0 {
				g.OnSent(now, 0, 100)
			}
			g.Tick(now)
		}
	}
	send(time.Minute)
	require.False(t, g.Good(), "never an ack")
	drive(g, &now, 50*time.Millisecond, 5*time.Second)
	require.True(t, g.Good())
	send(900 * time.Millisecond)
	require.True(t, g.Good())
	send(200 * time.Millisecond)
	require.False(t, g.Good(), "a second of silence")
	send(time.Minute)
	require.False(t, g.Good())
	drive(g, &now, 50*time.Millisecond, g.Penalty()+time.Second)
	require.True(t, g.Good())
	for end := now + time.Minute; now < end; now += 10 * time.Millisecond {
		g.Tick(now)
	}
	require.True(t, g.Good(), "nothing was sent that an ack could be missing of")
}

// TestGoodBadTurns: the packets of a second are as many at any tick. A loop that has slept has those of a second at most.
func TestGoodBadTurns(t *testing.T) {
	for _, tick := range []time.Duration{time.Second / 60, 70 * time.Millisecond, 250 * time.Millisecond, time.Second, 3 * time.Second} {
		for good, interval := range map[bool]time.Duration{false: BadInterval, true: GoodInterval} {
			g := NewGoodBad(1000)
			g.good, g.rtt = good, 1
			rtt := time.Millisecond
			if !good {
				rtt = time.Second
			}
			now, count := time.Second, 0
			run := func(d time.Duration) (sent int) {
				for end := now + d; now < end; now += tick {
					g.Tick(now)
					for g.Budget(now) > 0 {
						g.OnSent(now, int64(count), 500)
						g.OnAck(now, int64(count), 500, rtt)
						count++
						sent++
					}
				}
				return sent
			}
			run(12 * time.Second)
			require.Equal(t, good, g.Good())
			sent := run(30 * time.Second)
			require.InDelta(t, 30*time.Second/interval, sent, 2, "ticks of %v, good %v", tick, good)
			for range 5 {
				now += time.Minute
				g.Tick(now)
			}
			require.LessOrEqual(t, run(1), int(time.Second/interval), "ticks of %v, good %v", tick, good)
			for range 5 {
				now += time.Minute
				require.LessOrEqual(t, run(1), int(slowestTick/GoodInterval)+1, "a pause; ticks of %v, good %v", tick, good)
			}
		}
	}
}

func TestTokenBucket(t *testing.T) {
	b := NewTokenBucket(3000)
	tick := time.Second / 30
	now := time.Second
	b.Tick(now)
	require.Equal(t, 1, b.Budget(now))
	b.OnSent(now, 0, 499)
	require.Zero(t, b.Budget(now))
	for i := range 5 {
		require.Zero(t, b.Budget(now), "100 bytes a tick: tick %d", i)
		now += tick
		b.Tick(now)
	}
	require.Positive(t, b.Budget(now))
	b.OnSent(now, 1, 500)
	now += time.Second
	b.Tick(now)
	require.Zero(t, b.Budget(now), "a hitch counts as one tick")
	for range 20 {
		now += tick
		b.Tick(now)
	}
	require.InDelta(t, 200, b.Budget(now), 2, "two ticks of credit at most")
	b.Tick(now)
	require.InDelta(t, 200, b.Budget(now), 2, "a second tick at the same time changes nothing")
	require.Equal(t, float64(MinNetSpeed), NewTokenBucket(1).Rate())
	b.SetRate(9000)
	require.Equal(t, 9000.0, b.Rate())
}

// TestIdleTicksGatherNoCredit: a loop that sleeps while it has nothing to send has two seconds of the rate to spend at most behind it, and one that always ticks seldom and
// uses its credit has that of a whole tick.
func TestIdleTicksGatherNoCredit(t *testing.T) {
	a, err := NewAdaptive(AdaptiveConfig{MinRate: 30_000, MaxRate: 30_000})
	require.NoError(t, err)
	for _, c := range []Controller{NewTokenBucket(30_000), a} {
		now, id := time.Second, int64(0)
		c.Tick(now)
		for range 10 {
			now += time.Minute
			c.Tick(now)
		}
		require.LessOrEqual(t, c.Budget(now), 60_001, "%T", c)
		for range 5 {
			for c.Budget(now) > 0 {
				c.OnSent(now, id, 100)
				c.OnAck(now, id, 100, 50*time.Millisecond)
				id++
			}
			now += 2 * time.Second
			c.Tick(now)
		}
		if c == Controller(a) {
			require.Greater(t, a.creditLimit(), 55_000.0) // what is in flight bounds it besides
		} else {
			require.Greater(t, c.Budget(now), 55_000)
		}
		for range 5 { // pauses aren't the pace of a loop, however many there are
			for c.Budget(now) > 0 {
				c.OnSent(now, id, 100)
				c.OnAck(now, id, 100, 50*time.Millisecond)
				id++
			}
			now += time.Minute
			c.Tick(now)
			require.LessOrEqual(t, c.Budget(now), 2*4*30_000+1, "%T", c)
		}
	}
}

// TestLargeAmongAcks: two large packets that are lost among many small ones tell little, though they are most of the bytes.
func TestLargeAmongAcks(t *testing.T) {
	a := adaptive(t)
	now, before := time.Duration(0), a.Rate()
	for id := int64(0); id < 120; id++ {
		bytes := 38
		if id%12 == 6 {
			bytes = 1300
		}
		a.OnSent(now, id, bytes)
		now += 50 * time.Millisecond
		if id == 30 || id == 42 {
			a.OnLost(now, id, bytes)
		} else {
			a.OnAck(now, id, bytes, 50*time.Millisecond)
		}
		a.Tick(now)
		require.GreaterOrEqual(t, a.Rate(), before, "packet %d", id)
	}
}

// TestLossWhileIdle: what a path loses while the application uses less than the rate says nothing once it uses all of it.
func TestLossWhileIdle(t *testing.T) {
	l := lossTest{base: 0.05, tolerance: 0.05}
	now, rng := time.Duration(0), rand.New(rand.NewPCG(1, 1))
	slot := func(limited bool, loss float64) cause {
		for range 12 {
			if rng.Float64() < loss {
				l.lose(now)
			} else {
				l.slot.acked++
			}
		}
		now += lossSlot
		return l.verdict(now, 50_000, false, limited)
	}
	for range 20 {
		require.Equal(t, tolerable, slot(true, 0.2))
	}
	require.Equal(t, tolerable, slot(false, 0), "a slot without loss")
	var causes []cause
	for range 10 {
		causes = append(causes, slot(false, 0.2))
	}
	require.Contains(t, causes, congestive, "what is lost at the rate counts")
}

// TestCreditOfTheHighestRates: the credit that slow ticks give at the highest rates is a budget, with 32 bits too.
func TestCreditOfTheHighestRates(t *testing.T) {
	fast, err := NewAdaptive(AdaptiveConfig{InitialRate: math.MaxInt32, MaxRate: math.MaxInt32, MaxBurst: time.Second})
	require.NoError(t, err)
	for _, c := range []Controller{NewTokenBucket(math.MaxInt32), fast} {
		for now := range time.Duration(10) {
			c.Tick(now * 3 * time.Second)
			require.Positive(t, c.Budget(now*3*time.Second+1), "%T", c)
		}
	}
}

// TestVerdictOnLoss: loss is congestion beyond the tolerance and chance, in twenty packets or more without the worst slot of time. What a cut leaves as it was is the path's, and what it ends isn't. Where the application doesn't use the rate it is none, unless hardly anything arrives.
func TestVerdictOnLoss(t *testing.T) {
	const now = 10 * time.Second
	for name, v := range map[string]struct {
		acked, lost    int // and the worst slot, of five packets that were all lost
		change         func(l *lossTest)
		queue, limited bool
		cause          cause
		tolerance      float64
		last           float64 // the loss that is remembered
		anew           bool
	}{
		"too soon":                       {10, 90, func(l *lossTest) { l.since = now - lossSlot + 1 }, false, false, tolerable, 0.05, 0, false},
		"beyond chance":                  {88, 12, func(*lossTest) {}, false, false, congestive, 0.05, 0.12 - math.Sqrt(0.12*0.88/100), true},
		"as is":                          {89, 11, func(*lossTest) {}, false, false, tolerable, 0.05, 0, false},
		"twenty":                         {10, 10, func(*lossTest) {}, false, false, congestive, 0.05, 0.5 - math.Sqrt(0.25/20), true},
		"nineteen":                       {9, 10, func(*lossTest) {}, false, false, tolerable, 0.05, 0, false},
		"unused":                         {49, 51, func(l *lossTest) { l.eager = gathered{} }, false, true, tolerable, 0.05, 0, false},
		"unused, and hardly any":         {48, 52, func(l *lossTest) { l.eager = gathered{} }, false, true, congestive, 0.05, 0.52 - math.Sqrt(0.52*0.48/100), true},
		"used, of what was unused":       {50, 50, func(l *lossTest) { l.eager = gathered{} }, false, false, tolerable, 0.05, 0, false},
		"many":                           {385, 15, func(l *lossTest) { l.tolerance = 0.306 }, false, false, tolerable, 0.304, 0, true},
		"not as many":                    {384, 15, func(l *lossTest) { l.tolerance = 0.306 }, false, false, tolerable, 0.306, 0, false},
		"the same, at half the rate":     {80, 20, func(l *lossTest) { l.lastLoss = 0.2 }, false, false, ofThePath, 0.3, 0, true},
		"the same, and it was tolerated": {80, 20, func(l *lossTest) { l.lastLoss, l.tolerance = 0.2, 0.35 }, false, false, ofThePath, 0.35, 0, true},
		"most that is a path's":          {60, 40, func(l *lossTest) { l.lastLoss = 0.35 }, false, false, ofThePath, maxTolerance, 0, true},
		"more than that":                 {59, 41, func(l *lossTest) { l.lastLoss = 0.35 }, false, false, tolerable, 0.05, 0.35, false},
		"none":                           {100, -5, func(l *lossTest) { l.lastLoss = 0.2 }, false, false, answered, 0.05, 0, false},
		"too few to tell":                {20, 1, func(l *lossTest) { l.lastLoss = 0.2 }, false, false, tolerable, 0.05, 0.2, false},
		"a queue":                        {80, 20, func(l *lossTest) { l.lastLoss = 0.2 }, true, false, congestive, 0.05, 0.2 - math.Sqrt(0.16/100), true},
		"at nearly the rate of before":   {80, 20, func(l *lossTest) { l.lastLoss, l.lastRate = 0.2, 54e3 }, false, false, congestive, 0.05, 0.2 - math.Sqrt(0.16/100), true},
	} {
		l := lossTest{base: 0.05, tolerance: 0.05, lastRate: 100e3, rate: 50e3, since: now - lossSlot}
		l.slot = fates{0, 1}
		l.all = gathered{fates{v.acked, v.lost + 4}, fates{0, 5}}
		l.eager = l.all
		v.change(&l)
		require.Equal(t, v.cause, l.verdict(now, 50e3, v.queue, v.limited), name)
		require.InDelta(t, v.tolerance, l.tolerance, 1e-4, name)
		require.InDelta(t, v.last, l.lastLoss, 1e-9, name)
		switch {
		case v.anew:
			require.Equal(t, []any{gathered{}, gathered{}, fates{}, now, 0.0}, []any{l.all, l.eager, l.slot, l.since, l.rate}, name)
		case name != "too soon":
			require.Equal(t, []any{fates{v.acked, v.lost + 5}, fates{}, now, 50e3}, []any{l.all.fates, l.slot, l.since, l.rate}, "%s: a slot ends", name)
		}
	}
}

// TestSlotsOfLoss: the slot with the most losses is the worst, and one begins with the first loss after a slot without any.
func TestSlotsOfLoss(t *testing.T) {
	var g gathered
	for _, slot := range []fates{{5, 0}, {5, 3}, {1, 3}, {9, 2}} {
		g.add(slot)
	}
	require.Equal(t, gathered{fates{20, 8}, fates{5, 3}}, g)
	require.InEpsilon(t, 0.25, (&fates{3, 1}).loss(), 1e-9)

	l := lossTest{slot: fates{5, 0}, since: 1, clean: true}
	l.lose(70 * ms)
	require.Equal(t, lossTest{slot: fates{0, 1}, since: 70 * ms, clean: true, all: gathered{fates: fates{5, 0}}}, l)
	l.lose(80 * ms)
	require.Equal(t, lossTest{slot: fates{0, 2}, since: 70 * ms, clean: true, all: gathered{fates: fates{5, 0}}}, l)
	l.close(170*ms, 100, false)
	require.False(t, l.clean)
	l.slot.acked = 3
	l.lose(200 * ms)
	require.Equal(t, fates{3, 1}, l.slot, "behind one with losses it goes on")
	require.Equal(t, 170*ms, l.since)
	l.close(270*ms, 90, true)
	l.close(370*ms, 120, false)
	require.True(t, l.clean)
	require.Equal(t, 90.0, l.rate, "the lowest")
	require.Equal(t, []fates{{8, 3}, {0, 2}}, []fates{l.all.fates, l.eager.fates})
}

// TestGoodBadRTT: round trip times are smoothed by a tenth, from the first on. One of 0 is none.
func TestGoodBadRTT(t *testing.T) {
	g := NewGoodBad(1000)
	for _, v := range []struct {
		rtt  time.Duration
		then float64
	}{{0, 0}, {100 * ms, 100e6}, {200 * ms, 110e6}, {0, 110e6}, {10 * ms, 100e6}} {
		g.OnAck(0, 0, 0, v.rtt)
		require.InDelta(t, v.then, g.rtt, 1e-3)
	}
}

// TestGoodBadStarts: good conditions count from the first tick on, and without a break.
func TestGoodBadStarts(t *testing.T) {
	g := NewGoodBad(1000)
	for now := range 10 * time.Second / ms {
		g.Tick(now * ms)
	}
	require.False(t, g.Good(), "nothing has shown that they are")
	g = NewGoodBad(1000)
	g.OnAck(0, 0, 0, ms)
	g.Tick(time.Hour)
	require.Zero(t, g.goodFor)
	g.Tick(time.Hour + 100*ms)
	require.Equal(t, 100*ms, g.goodFor)
	require.Equal(t, [3]uint32{100, 0, 0}, g.ticks.gaps, "the first is no time between two")
	g.rtt = 1e9
	g.Tick(time.Hour + 200*ms)
	require.Zero(t, g.goodFor)
}
