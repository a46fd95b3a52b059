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
