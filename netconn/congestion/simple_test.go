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
