package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestNoSettingCostsThroughput: one reliable channel fills a path with a round trip whatever the ack delay is, at ticks of 60 and of 500
// a second, whether packets leave at once or at ticks. No setting moves less than 0.6 of what the best does, and the
// best is what the packet window allows: 6140 packets of 1400 bytes a round trip.
func TestNoSettingCostsThroughput(t *testing.T) {
	const seed, warm, length = 1, 1500 * time.Millisecond, 500 * time.Millisecond
	for _, rtt := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond} {
		best, worst, slowest := 0.0, 1e18, ""
		for _, s := range []struct {
			name   string
			prompt bool
			rate   time.Duration
			delay  time.Duration
		}{
			{"prompt, 60/s, acks at once", true, 60, 0},
			{"prompt, 60/s, acks after 100 ms", true, 60, 100 * time.Millisecond},
			{"prompt, 500/s, acks after 25 ms", true, 500, 25 * time.Millisecond},
			{"ticks, 60/s, acks at once", false, 60, 0},
			{"ticks, 60/s, acks after 100 ms", false, 60, 100 * time.Millisecond},
			{"ticks, 500/s, acks after 25 ms", false, 500, 25 * time.Millisecond},
		} {
			l := newLab(t, both(netsim.Settings{Lag: rtt / 2}), seed, func(i int, c *Config) {
				adaptive, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
				require.NoError(t, err)
				c.AckDelay, c.Controller = s.delay, adaptive
				c.Protocol = Bunchnet()
				c.Protocol.Bunch.MaxPacket = 1400
			})
			if l.tick = time.Second / s.rate; s.prompt {
				l.fine = time.Millisecond
			}
			l.control()
			ch := l.open(0)
			msg := make([]byte, 1200)
			game := func() {
				for err := error(nil); err == nil; {
					_, err = ch.SendBunch(&bunch.Out{Data: msg, Reliable: true})
				}
			}
			run := func(d time.Duration) {
				for end := l.now + d; l.now < end && l.res[0] == nil; {
					if l.step(game); s.prompt {
						game()
						l.conns[0].FlushWritten(l.now)
					}
				}
			}
			run(warm)
			before := l.got[1]
			run(length)
			mb := float64(l.got[1]-before) / length.Seconds() / 1e6
			t.Logf("seed %d, RTT %v, %s: %.1f MB/s", seed, rtt, s.name, mb)
			if best = max(best, mb); mb < worst {
				worst, slowest = mb, s.name
			}
		}
		require.GreaterOrEqual(t, worst, 0.6*best, "RTT %v, %s", rtt, slowest)
		require.GreaterOrEqual(t, best, 0.95*6140*1200/rtt.Seconds()/1e6, "RTT %v", rtt)
	}
}

// TestAdaptiveUnderJitter: packets whose delays vary by 20 ms each, on their own, are put in order again, so all are as late as the
// latest. Adaptive takes that for no queue.
func TestAdaptiveUnderJitter(t *testing.T) {
	const link = 10e6
	const ms = time.Millisecond
	for i, jitter := range []time.Duration{0, 10 * ms, 20 * ms, 20 * ms, 20 * ms, 20 * ms} {
		seed := uint64(i)
		controller, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
		require.NoError(t, err)
		l := newLab(t, both(netsim.Settings{Lag: 40 * time.Millisecond, LagVariance: jitter, Bandwidth: link, QueueDelay: 200 * time.Millisecond}), seed, func(i int, c *Config) {
			if i == 0 {
				c.Controller = controller
			}
		})
		l.fine = time.Millisecond
		l.control()
		l.run(200*time.Millisecond, nil)
		ch := l.open(0)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
		require.NoError(t, err)
		l.run(200*time.Millisecond, nil)
		data, before := make([]byte, 900), 0
		const warmUp, length = 10 * time.Second, 20 * time.Second
		start := l.now
		for l.now < start+warmUp+length {
			if l.step(nil); l.now <= start+warmUp {
				before = l.got[1]
			}
			for controller.Budget(l.now) > 0 {
				_, err := ch.SendBunch(&bunch.Out{Data: data, NoMerge: true})
				require.NoError(t, err)
				l.conns[0].FlushWritten(l.now)
			}
		}
		share := float64(l.got[1]-before) * 8 / length.Seconds() / link
		t.Logf("seed %d, jitter %v: %.2f of the link", seed, jitter, share)
		require.Greater(t, share, 0.75, "seed %d, jitter %v", seed, jitter)
	}
}

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

// A game at 1 Hz, or 10, gets the rate that it configured.
func TestSlowTicksGetTheirRate(t *testing.T) {
	for _, tick := range []time.Duration{testTick, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, time.Second} {
		l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil) // 100 kB/s
		l.tick, l.fine = tick, 2*time.Millisecond
		ch := l.control()
		l.run(5*time.Second, nil)
		got := l.got[1]
		l.run(30*time.Second, func() {
			for ch.Room() > 2 {
				if _, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, 900), Reliable: true, NoMerge: true}); err != nil {
					break
				}
			}
		})
		rate := float64(l.got[1]-got) / 30
		t.Logf("tick %v: %.0f B/s", tick, rate)
		if rate < 80_000 {
			t.Errorf("tick %v: %.0f B/s of 100000", tick, rate)
		}
	}
}
