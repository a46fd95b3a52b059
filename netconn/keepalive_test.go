package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestKeepAlivesLeaveRateForBunches: however short KeepAlive is, reliable bunches have most of the rate.
func TestKeepAlivesLeaveRateForBunches(t *testing.T) {
	for _, keepAlive := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 200 * time.Millisecond} {
		for _, speed := range []int{1800, 5000, 20_000} {
			for _, tick := range []time.Duration{time.Millisecond, testTick} {
				l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(_ int, c *Config) {
					c.KeepAlive, c.NetSpeed = keepAlive, speed
				})
				l.tick = tick
				l.join()
				ch := l.open(0)
				l.run(20*time.Second, func() {
					for ch.Room() > 0 && l.conns[0].Table().Waiting() < 4 {
						_, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, 400), Reliable: true, NoMerge: true})
						require.NoError(t, err)
					}
				})
				require.Nil(t, l.res[0])
				got, sent := float64(l.got[1])/20/float64(speed), float64(l.offered[0])/l.now.Seconds()/float64(speed)
				require.Greater(t, got, 0.8, "keep-alive %v, %d B/s, ticks of %v", keepAlive, speed, tick)
				require.Less(t, sent, 1.0, "keep-alive %v, %d B/s, ticks of %v", keepAlive, speed, tick)
			}
		}
	}
}

// TestKeepAliveOfALowRate: each deadline of an idle end is that of a packet, an eighth of the rate at most, at the default's 200 ms at the latest, and at a third of
// Timeout whatever the rate; a KeepAlive that the rate allows stays as it is.
func TestKeepAliveOfALowRate(t *testing.T) {
	for _, v := range []struct {
		keepAlive, timeout time.Duration
		rate               congestion.Controller
		want               time.Duration
	}{
		{10 * time.Millisecond, time.Minute, congestion.NewTokenBucket(1800), 195556 * time.Microsecond},
		{10 * time.Millisecond, -1, congestion.NewTokenBucket(5000), 70400 * time.Microsecond},
		{10 * time.Millisecond, time.Minute, congestion.NewTokenBucket(100_000), 10 * time.Millisecond},
		{time.Millisecond, time.Minute, congestion.NewTokenBucket(100_000), 3520 * time.Microsecond},
		{time.Millisecond, time.Minute, noRate{congestion.NewTokenBucket(1800)}, 200 * time.Millisecond},
		{300 * time.Millisecond, time.Minute, congestion.NewTokenBucket(1800), 300 * time.Millisecond},
		{10 * time.Millisecond, 90 * time.Millisecond, congestion.NewTokenBucket(1800), 30 * time.Millisecond},
		{45 * time.Millisecond, 90 * time.Millisecond, congestion.NewTokenBucket(1800), 45 * time.Millisecond},
	} {
		h := newHand(t, func(i int, c *Config) {
			if i == 0 {
				c.KeepAlive = v.keepAlive
			}
		})
		c := h.conns[0]
		c.cfg.Timeout, c.cfg.Controller = v.timeout, v.rate
		c.flow.lastReceive = c.now + time.Hour
		for range 50 {
			h.sent[0] = nil
			last := c.flow.lastSend
			at, ok := c.NextDeadline()
			require.True(t, ok)
			require.InDelta(t, last+v.want, at, float64(time.Microsecond), "%+v", v)
			c.Tick(at - 1)
			require.Empty(t, h.sent[0], "%+v", v)
			c.Tick(at)
			require.Len(t, h.sent[0], 1, "%+v", v)
		}
	}
}

// noRate allows packets, and has a rate of 0.
type noRate struct{ congestion.Controller }

func (noRate) Rate() float64 { return 0 }
