package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestNarrowPathUnderLoad: that the path loses all large packets is found out while nothing but large packets waits, at any rate; it
// isn't said of the peer.
func TestNarrowPathUnderLoad(t *testing.T) {
	for _, tick := range []time.Duration{time.Millisecond, testTick, 100 * time.Millisecond} {
		for _, speed := range []int{20_000, 100_000, 1_000_000, 0} {
			for _, keepAlive := range []time.Duration{200 * time.Millisecond, 5 * time.Second} {
				l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, func(_ int, c *Config) {
					c.KeepAlive = keepAlive
					if c.NetSpeed = speed; speed == 0 {
						c.Controller = adapt()
					}
				})
				l.tick = tick
				l.control()
				l.run(time.Second, nil)
				ch := l.open(0)
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true})
				require.NoError(t, err)
				l.run(time.Second, nil)
				l.lose[0] = func(p []byte) bool { return len(p) > 500 }
				start := l.now
				l.run(40*time.Second, func() {
					for range 20 {
						if ch.Room() > 1 {
							_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
							require.NoError(t, err)
						}
					}
				})
				require.NotNil(t, l.res[0], "tick %v, %d bytes a second", tick, speed)
				t.Logf("tick %v, %d bytes a second: %v after %v", tick, speed, l.res[0], l.now-start)
				require.Equal(t, PathNarrow, l.res[0].Code)
				require.Less(t, l.now-start, 20*time.Second)
			}
		}
	}
}
