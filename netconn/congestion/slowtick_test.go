package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSlowTicksGrow: a loop of one tick a second to ten, which takes the acks of a tick and sends what they make room for before it ticks the controller, as connections
// do, has all of its credit: the rate grows.
func TestSlowTicksGrow(t *testing.T) {
	for _, tick := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, time.Second} {
		for _, cut := range []bool{false, true} {
			a, err := NewAdaptive(AdaptiveConfig{MaxRate: 500_000})
			require.NoError(t, err)
			var sent [][2]int64 // packets of the tick before, and of this one: from and to
			id, now, lost := int64(0), time.Duration(0), cut
			for range 30 * time.Second / tick {
				now += tick
				if len(sent) > 0 {
					for k := sent[0][0]; k < sent[0][1]; k++ {
						if lost && now > 3*time.Second { // once most of a tick is lost: the rate falls as far as it can
							a.OnLost(now, k, 1000)
						} else {
							a.OnAck(now, k, 1000, tick)
						}
					}
					sent = sent[1:]
				}
				lost = lost && now < 5*time.Second
				from := id
				send := func(unsent int) {
					for a.Budget(now) > unsent {
						a.OnSent(now, id, 1000)
						id++
					}
				}
				send(1000) // what acks make room for, but what is in the buffer
				a.Tick(now)
				send(0)
				sent = append(sent, [2]int64{from, id})
			}
			require.Greater(t, a.Rate(), 400_000.0, "%v, cut %v", tick, cut)
		}
	}
}
