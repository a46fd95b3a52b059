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
