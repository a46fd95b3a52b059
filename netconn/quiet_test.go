package netconn

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var (
	quietSeeds = flag.Int("quiet", 60, "cases of TestQuietAgain")
	quietFirst = flag.Uint64("quietfirst", 1, "seed of the first one")
)

// TestQuietAgain: whatever two ends with whatever settings have been through, once nothing is said and the path is well they send keep-alives and what acks those,
// hold nothing, and have nothing to do in between: a timer that is never stopped would show as packets, or as a deadline that is always now.
func TestQuietAgain(t *testing.T) {
	for seed := range uint64(*quietSeeds) {
		quietAgain(t, *quietFirst+seed)
	}
}

func quietAgain(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	ms := func(d ...int) time.Duration { return time.Duration(d[rng.IntN(len(d))]) * time.Millisecond }
	var settings string
	keep := ms(50, 200, 200, 1000)
	coding := rng.IntN(3)
	wire := []Protocol{Bunchnet(), Bunchnet(), Unreal51()}[rng.IntN(3)]
	lag, loss := ms(1, 20, 150), []float64{0, 5, 30}[rng.IntN(3)]
	l := newLab(t, both(netsim.Settings{Lag: lag}), seed, func(i int, c *Config) {
		c.KeepAlive, c.AckDelay, c.ReorderWindow, c.Protocol = keep, ms(0, 0, 30, 100), ms(0, 0, -1, 40), wire
		if !wire.Unreal && coding == 0 {
			c.Coding = Coding{Repairs: float64(1 + rng.IntN(3)), Adaptive: rng.IntN(2) == 0}
		} else if rng.IntN(2) == 0 {
			c.Redundancy = Redundancy{Copies: 1 + rng.IntN(3), Adaptive: rng.IntN(2) == 0}
		}
		if rng.IntN(2) == 0 {
			c.Controller = adapt()
		} else {
			c.NetSpeed = []int{20_000, 1_000_000}[rng.IntN(2)]
		}
		if rng.IntN(3) == 0 {
			c.MaxMemory = 1 << 20
		}
		settings += fmt.Sprintf("\n%d: KeepAlive %v, AckDelay %v, ReorderWindow %v, %+v, %+v, %T, NetSpeed %d, MaxMemory %d", i, c.KeepAlive, c.AckDelay, c.ReorderWindow, c.Coding, c.Redundancy,
			c.Controller, c.NetSpeed, c.MaxMemory)
	})
	l.control()
	l.run(2*time.Second, nil)
	for _, link := range l.links {
		require.NoError(t, link.Set(netsim.Settings{Lag: lag, Loss: loss, Order: loss, Dup: loss / 3}))
	}
	var chs []*channel.Channel
	for i := range 2 * (1 + rng.IntN(4)) {
		if wire.Unreal {
			i = 0 // both ends would take the same index
		}
		chs = append(chs, l.open(i%2))
	}
	for range 1 + rng.IntN(6) {
		rate, size := rng.IntN(4), []int{4, 60, 700, 9000}[rng.IntN(4)]
		l.dark = [2]bool{rng.IntN(4) == 0, rng.IntN(4) == 0}
		l.run(ms(30, 500, 3000, 9000), func() {
			for range rate {
				ch := chs[rng.IntN(len(chs))]
				if out := (bunch.Out{Data: make([]byte, size), Reliable: rng.IntN(2) == 0}); ch.Room() > 10 {
					_, _ = ch.SendBunch(&out)
				}
			}
		})
	}
	l.dark = [2]bool{}
	for _, link := range l.links {
		require.NoError(t, link.Set(netsim.Settings{Lag: lag}))
	}
	for i, r := range l.res {
		if r != nil {
			t.Fatalf("end %d: %v, seed %d%s", i, r, seed, settings)
		}
	}
	for l.now < 30*time.Minute && l.conns[0].Table().Unacked()+l.conns[1].Table().Unacked() > 0 {
		l.run(time.Second, nil)
	}
	l.run(20*time.Second, nil) // rarer keep-alives and probes of before
	for i, c := range l.conns {
		require.Zero(t, c.Table().Unacked(), "end %d, seed %d%s", i, seed, settings)
	}
	l.packets = [2]int{}
	const quiet = 30 * time.Second
	wakes := [2]int{}
	for end := l.now + quiet; l.now < end; {
		for i, c := range l.conns {
			if at, ok := c.NextDeadline(); ok && at <= l.now {
				wakes[i]++
			}
		}
		l.step(nil)
	}
	for i := range l.conns {
		// Each end's keep-alive, and an ack of the other's.
		most := 2*int(quiet/keep) + 4
		require.LessOrEqual(t, l.packets[i], most, "end %d sends too much, seed %d, lag %v, loss %v%s", i, seed, lag, loss, settings)
		require.LessOrEqual(t, wakes[i], most, "end %d wakes too often, seed %d, lag %v, loss %v%s", i, seed, lag, loss, settings)
	}
}
