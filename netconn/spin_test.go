package netconn

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var (
	sleepSeeds = flag.Int("sleep", 15, "cases of TestSleepsBetweenDeadlines")
	sleepFirst = flag.Uint64("sleepfirst", 1, "seed of the first one")
)

// TestSleepsBetweenDeadlines: a loop that wakes for packets and for NextDeadline alone doesn't spin in whatever state the ends are: saturated, dark, refused,
// closing, with coding, copies and probes of size. Wakes for which nothing came and nothing left are few in each second.
func TestSleepsBetweenDeadlines(t *testing.T) {
	worst, of := 0, uint64(0)
	for seed := range uint64(*sleepSeeds) {
		if n := sleeps(t, *sleepFirst+seed); n > worst {
			worst, of = n, *sleepFirst+seed
		}
	}
	t.Logf("at most %d idle wakes in a second, seed %d", worst, of)
}

// mostIdle is how many wakes in a second may find nothing to do: a bucket gives credit for a thirtieth of a second at most, so it is asked again.
const mostIdle = 100

func sleeps(t *testing.T, seed uint64) (worst int) {
	rng := rand.New(rand.NewPCG(seed, 77))
	ms := func(d ...int) time.Duration { return time.Duration(d[rng.IntN(len(d))]) * time.Millisecond }
	var settings string
	coding, wire := rng.IntN(2), []Protocol{Bunchnet(), Bunchnet(), Bunchnet(), Unreal51(), Unreal53(true)}[rng.IntN(5)]
	wire.FirstFree = false
	if rng.IntN(3) == 0 {
		wire.PacketWindow = []int{16, 40, 256}[rng.IntN(3)]
	}
	lag, loss := ms(0, 1, 20, 150, 700), []float64{0, 0, 5, 30, 80}[rng.IntN(5)]
	refuse := rng.IntN(4) == 0
	l := newLab(t, both(netsim.Settings{Lag: lag}), seed, func(i int, c *Config) {
		c.KeepAlive, c.AckDelay, c.ReorderWindow, c.Protocol = ms(1, 10, 200, 1000, 5000, 3600_000), ms(0, 0, 30, 500), ms(0, 0, -1, 40, 1000), wire
		c.Timeout = []time.Duration{0, -1}[rng.IntN(2)]
		c.LingerTimeout = ms(0, 100, 10_000)
		if c.KeepAlive > 20*time.Second {
			c.Timeout = -1
		}
		if !wire.Unreal && coding == 0 {
			c.Coding = Coding{Repairs: []float64{0.1, 0.5, 1, 3}[rng.IntN(4)], Adaptive: rng.IntN(2) == 0}
		} else if !wire.Unreal && rng.IntN(2) == 0 {
			c.LargestPacket = 1400 + rng.IntN(6000)
		}
		if rng.IntN(2) == 0 {
			c.Redundancy = Redundancy{Copies: 1 + rng.IntN(16), Adaptive: rng.IntN(2) == 0, MaxBits: []int{0, 100, 65536}[rng.IntN(3)]}
		}
		switch rng.IntN(4) {
		case 0:
			c.Controller = adapt()
		case 1:
			c.Controller = congestion.NewGoodBad(0)
		default:
			c.NetSpeed = []int{1800, 20_000, 1_000_000, 50_000_000}[rng.IntN(4)]
		}
		if rng.IntN(3) == 0 {
			c.MaxMemory = 700_000
		}
		if rng.IntN(3) == 0 {
			c.Secret = rng.Uint64()
		}
		if refuse {
			c.AllowOpen = func(in *bunch.In) error {
				if in.ChIndex > 3 {
					return errors.New("no")
				}
				return nil
			}
		}
		settings += fmt.Sprintf("\n%d: KeepAlive %v, Timeout %v, Linger %v, AckDelay %v, ReorderWindow %v, %+v, %+v, %T, NetSpeed %d, MaxMemory %d, LargestPacket %d", i, c.KeepAlive, c.Timeout, c.LingerTimeout, c.AckDelay, c.ReorderWindow,
			c.Coding, c.Redundancy, c.Controller, c.NetSpeed, c.MaxMemory, c.LargestPacket)
	})
	settings = fmt.Sprintf("seed %d, lag %v, loss %v, %s, window %d, refuse %v%s", seed, lag, loss, wire.Name, wire.PacketWindow, refuse, settings)
	l.control()
	var now string // what goes on
	var idle [2]int
	second := l.now
	run := func(d time.Duration, game func(), every time.Duration) {
		next := l.now + every
		for end := l.now + d; l.now < end && (l.res[0] == nil || l.res[1] == nil); {
			if game != nil && l.now >= next {
				next = l.now + every
				game()
			}
			l.wake(min(end, next), &idle)
			for i, c := range l.conns {
				if idle[i] > mostIdle {
					at, _ := c.NextDeadline()
					t.Fatalf("end %d woke %d times for nothing in %v at %v while %s, and next at %v: %+v\n%s", i, idle[i], l.now-second, l.now, now, at, c.Stats(), settings)
				}
			}
			if l.now-second >= time.Second {
				worst = max(worst, idle[0], idle[1])
				second, idle = l.now, [2]int{}
			}
		}
	}
	now = "joining"
	run(2*time.Second, nil, time.Hour)
	for _, link := range l.links {
		require.NoError(t, link.Set(netsim.Settings{Lag: lag, Loss: loss, Order: loss / 2, Dup: loss / 3}))
	}
	var chs []*channel.Channel
	for i := range 2 * (1 + rng.IntN(4)) {
		if l.conns[i%2].Closed() {
			return worst
		}
		chs = append(chs, l.open(i%2))
	}
	for range 1 + rng.IntN(6) {
		rate, size, reliable := rng.IntN(4), []int{4, 60, 700, 9000, 200_000}[rng.IntN(5)], rng.IntN(3)
		l.dark = [2]bool{rng.IntN(4) == 0, rng.IntN(4) == 0}
		d, every := ms(30, 500, 3000, 9000), ms(1, 16, 100, 1000)
		now = fmt.Sprintf("%d of %d bytes each %v (%d), dark %v", rate, size, every, reliable, l.dark)
		run(d, func() {
			for range rate {
				ch := chs[rng.IntN(len(chs))]
				if out := (bunch.Out{Data: make([]byte, size), Reliable: reliable == 0 || reliable == 1 && rng.IntN(2) == 0}); ch.Room() > 10 {
					_, _ = ch.SendBunch(&out)
				}
			}
		}, every)
	}
	now = "ending"
	if rng.IntN(2) == 0 {
		l.conns[rng.IntN(2)].Close(l.now, "")
		run(ms(100, 1000), nil, time.Hour)
	}
	if rng.IntN(2) == 0 {
		l.dark = [2]bool{}
	}
	run(ms(1000, 20_000), nil, time.Hour)
	return worst
}
