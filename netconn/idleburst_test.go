package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSilenceGathersNoBurst: an end that sleeps until NextDeadline, with nothing to say or in a darkness, has no more to spend behind it than a loop that ticks once a second.
func TestSilenceGathersNoBurst(t *testing.T) {
	never := func() bool { return false }
	for _, keepAlive := range []time.Duration{200 * time.Millisecond, 5 * time.Second, time.Hour} {
		for _, adaptive := range []bool{false, true} {
			for _, dark := range []bool{false, true} {
				l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond}), 1, func(_ int, c *Config) {
					c.KeepAlive, c.Timeout = keepAlive, -1
					if adaptive {
						c.Controller = adapt()
					}
				})
				l.control()
				ch := l.open(0)
				say := func(n int) {
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, n), Reliable: true})
					require.NoError(t, err)
				}
				say(20)
				l.drive(2*time.Second, true, never)
				l.dark = [2]bool{dark, dark}
				l.drive(5*time.Hour, true, never)
				l.dark = [2]bool{}
				for range 20 {
					say(60_000)
				}
				rate, before := l.conns[0].cfg.Controller.Rate(), l.offered[0]
				l.drive(200*time.Millisecond, true, never)
				sent := float64(l.offered[0]-before) / rate
				t.Logf("KeepAlive %v, adaptive %v, dark %v: in 200 ms what the rate of %.0f takes %.0f ms for", keepAlive, adaptive, dark, rate, 1000*sent)
				if sent > 2.4 {
					t.Errorf("KeepAlive %v, adaptive %v, dark %v: %.0f ms of %.0f B/s in 200 ms", keepAlive, adaptive, dark, 1000*sent, rate)
				}
			}
		}
	}
}
