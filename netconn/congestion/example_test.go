package congestion_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/congestion"
)

func ExampleAdaptive() {
	c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
	if err != nil {
		panic(err)
	}
	const tick, rtt, size = 20 * time.Millisecond, 60 * time.Millisecond, 500
	sent := map[int64]time.Duration{}
	var next, acked int64
	for now := time.Duration(0); now < 500*time.Millisecond; now += tick {
		for ; acked < next && now-sent[acked] >= rtt; acked++ {
			c.OnAck(now, acked, size, now-sent[acked])
		}
		c.Tick(now)
		for c.Budget(now) > 0 {
			sent[next] = now
			c.OnSent(now, next, size)
			next++
		}
	}
	fmt.Println(c.Phase(), c.Rate() > 60_000)
	// Output: startup true
}

// Unreal's NetSpeed: a fixed rate. A packet may leave on credit, so there is one more than the rate says.
func ExampleTokenBucket() {
	b := congestion.NewTokenBucket(10_000)
	sent := 0
	for now := time.Duration(0); now <= time.Second; now += 20 * time.Millisecond {
		b.Tick(now)
		for ; b.Budget(now) > 0; sent++ {
			b.OnSent(now, int64(sent), 500)
		}
	}
	fmt.Println(sent, "packets of 500 bytes in a second")
	// Output: 21 packets of 500 bytes in a second
}

// Two speeds, by the round trip time.
func ExampleGoodBad() {
	g := congestion.NewGoodBad(1200)
	fmt.Println(g.Good(), g.SendInterval())
	for i := range int64(600) { // twenty seconds of a good path
		now := time.Duration(i) * time.Second / 30
		g.OnSent(now, i, 1200)
		g.OnAck(now, i, 1200, 50*time.Millisecond)
		g.Tick(now)
	}
	fmt.Println(g.Good(), g.SendInterval())
	// Output:
	// false 100ms
	// true 33.333333ms
}
