package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestBulkBothWays: with the adaptive controller bulk in both directions gets most of each. The queue that one makes when it looks for more holds up the acks of the other, and is no
// queue of the other's.
func TestBulkBothWays(t *testing.T) {
	for _, c := range []struct {
		rate float64 // bytes a second, each way
		lag  time.Duration
		hz   int
	}{{200_000, 25 * time.Millisecond, 60}, {200_000, 125 * time.Millisecond, 60}, {200_000, 235 * time.Millisecond, 60}, {1_000_000, 125 * time.Millisecond, 60}, {1_000_000, 60 * time.Millisecond, 128}} {
		l := newLab(t, both(netsim.Settings{Lag: c.lag, Bandwidth: 8 * c.rate, QueueDelay: 300 * time.Millisecond}), 1, func(_ int, cfg *Config) { cfg.Controller = adapt() })
		l.tick = time.Second / time.Duration(c.hz)
		l.join()
		chs := [2]*channel.Channel{l.open(0), l.open(1)}
		game := func() {
			for _, ch := range chs {
				for i := 0; i < 200 && ch.Room() > 2 && ch.NumOutRec() < 4000; i++ {
					if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true}); err != nil {
						break
					}
				}
			}
		}
		l.run(40*time.Second, game)
		got := l.got
		l.run(30*time.Second, game)
		share := [2]float64{float64(l.got[1]-got[1]) / 30 / c.rate, float64(l.got[0]-got[0]) / 30 / c.rate}
		t.Logf("%+v: %.2f of the path", c, share)
		require.Greater(t, min(share[0], share[1]), 0.85, "%+v", c)
	}
}

// TestWayBackByAClock: how long the peer's packets wait in a queue is told by their jitter clocks.
func TestWayBackByAClock(t *testing.T) {
	var w wayBack
	now, sent := time.Duration(0), time.Duration(0)
	hear := func(gap, wait time.Duration) time.Duration {
		sent += gap
		now = sent + wait
		return w.heard(now, int(sent%time.Second/time.Millisecond))
	}
	for range 500 {
		require.Less(t, hear(17*time.Millisecond, 30*time.Millisecond), 2*time.Millisecond)
	}
	for i := range 90 { // a queue grows to 900 ms, and goes
		wait := time.Duration(i) * 10 * time.Millisecond
		require.InDelta(t, wait.Seconds(), hear(17*time.Millisecond, 30*time.Millisecond+wait).Seconds(), 0.002)
	}
	for i := 89; i >= 0; i-- {
		wait := time.Duration(i) * 10 * time.Millisecond
		require.InDelta(t, wait.Seconds(), hear(17*time.Millisecond, 30*time.Millisecond+wait).Seconds(), 0.002)
	}
	require.Zero(t, hear(700*time.Millisecond, 300*time.Millisecond), "too long ago: not known")
	for range 4 * 10 * 60 { // a way that has become longer is known after 30 s
		hear(17*time.Millisecond, 400*time.Millisecond)
	}
	require.Less(t, hear(17*time.Millisecond, 400*time.Millisecond), 2*time.Millisecond)
	require.Zero(t, w.heard(now+time.Second, 1023), "a packet without a clock")
}
