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
		{MinRate: 50_000}, {MaxRate: 10_000}, {MinRate: -1}, {TargetDelay: -1},
		{MaxBurst: -1}, {LossTolerance: 0.9}, {MaxPacket: 10}, {MaxPacket: 1 << 20},
	} {
		_, err := NewAdaptive(cfg)
		require.ErrorIs(t, err, ErrConfig, "%+v", cfg)
	}
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
}
