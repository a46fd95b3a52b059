package netconn

import (
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// An idle connection over a perfect path, with the driver's default controller, has nothing that says the path became narrow: 20 kB
// of reliable bunches arrive within a few round trips.
func TestIdleKeepsItsRate(t *testing.T) {
	for _, rtt := range []time.Duration{20, 50, 100, 200, 300} {
		for _, idle := range []time.Duration{0, time.Second, 10 * time.Second, 10 * time.Minute} {
			l := newLab(t, both(netsim.Settings{Lag: rtt * time.Millisecond / 2}), 1, func(_ int, c *Config) { c.Controller = adapt() })
			l.fine = 2 * time.Millisecond
			l.control()
			l.run(idle, nil)
			rate := l.conns[0].cfg.Controller.Rate()
			ch := l.open(0)
			start := l.now
			for range 22 {
				_, _ = ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, 900), Reliable: true, NoMerge: true})
			}
			for len(l.rlat[1]) < 22 && l.now-start < 30*time.Second {
				l.step(nil)
			}
			if d := l.now - start; d > 4*rtt*time.Millisecond+time.Second/2 {
				t.Errorf("rtt %v idle %v: rate %.0f kB/s, 20 kB took %v", rtt*time.Millisecond, idle, rate/1000, d)
			}
		}
	}
}
