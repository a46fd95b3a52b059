package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestShareKeepsToTheRate: an end that acks its peer's packets, or whose game doesn't ask the controller, sends its reliable bunches at
// the rate and a quarter, however short its ticks are.
func TestShareKeepsToTheRate(t *testing.T) {
	for _, tick := range []time.Duration{time.Millisecond, testTick, 100 * time.Millisecond} {
		for _, voice := range []int{0, 30} {
			l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(_ int, c *Config) { c.NetSpeed = 8000 })
			l.tick = tick
			l.control()
			l.run(time.Second, nil)
			ch, theirs := l.open(1), l.open(0)
			sent := 0
			l.run(30*time.Second, func() {
				if ch.NumOutRec() < 1000 { // within MaxMemory
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
				if voice > 0 {
					if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, voice)}); err == nil {
						sent += voice
					}
				}
				if theirs.Room() > 1 {
					_, err := theirs.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
					require.NoError(t, err)
				}
			})
			got := l.got[0] - sent
			t.Logf("tick %v, %d B unreliable a tick: %d bytes a second of reliable ones", tick, voice, got/30)
			require.Less(t, got/30, 8000*5/4+1000)
			require.Greater(t, got/30, 8000/5)
		}
	}
}

// TestShareBesideAGameThatAsks: unreliable bunches that take the budget whenever there is some leave a share to the reliable ones that wait, however short the ticks are, and
// both keep to the rate.
func TestShareBesideAGameThatAsks(t *testing.T) {
	for name, controller := range map[string]congestion.Controller{"good/bad": congestion.NewGoodBad(1000), "adaptive": adapt()} {
		l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond, Bandwidth: 1e6, QueueDelay: 100 * time.Millisecond}), 1, func(i int, c *Config) {
			if i == 1 {
				c.Controller = controller
			}
		})
		l.join()
		ch := l.open(1)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 16), Reliable: true})
		require.NoError(t, err)
		l.run(5*time.Second, nil)
		l.tick, l.next = time.Millisecond, 0
		l.got, l.offered = [2]int{}, [2]int{}
		unreliable, rate, n := 0, 0.0, 0
		l.run(8*time.Second, func() {
			rate += l.conns[1].cfg.Controller.Rate()
			n++
			if ch.NumOutRec() < 1000 {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 800), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
			for l.conns[1].IsNetReady() {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900)})
				require.NoError(t, err)
				unreliable += 900
			}
		})
		rate *= 8 / float64(n)
		t.Logf("%s: %.2f of the rate offered, %.2f reliable, %.2f not", name, float64(l.offered[1])/rate, float64(l.got[0]-unreliable)/rate, float64(unreliable)/rate)
		require.Greater(t, float64(l.got[0]-unreliable), 0.12*rate, name)
		require.Greater(t, float64(unreliable), 0.5*rate, name)
		require.Less(t, float64(l.offered[1]), 1.05*rate, name)
	}
}

// TestShareFromNothing: a share that is neither owed nor left grows by no more than others took.
func TestShareFromNothing(t *testing.T) {
	c, err := New(Config{LowLevelSend: func([]byte) {}, NetSpeed: 8000}, 0, 1, 1)
	require.NoError(t, err)
	c.pace.wrote(false, 10)
	c.now = 100 * time.Millisecond
	c.pace.tick(c)
	require.InDelta(t, 10, c.pace.share, 1e-6)
}

// TestReliableGoOnAfterABurst: unreliable bunches far beyond the rate, which get a quarter of it beside them, don't hold up the reliable ones
// sent when they have ended, whatever the controller.
func TestReliableGoOnAfterABurst(t *testing.T) {
	for name, controller := range map[string]func() congestion.Controller{
		"bucket":   func() congestion.Controller { return congestion.NewTokenBucket(20_000) },
		"good/bad": func() congestion.Controller { return congestion.NewGoodBad(1000) },
		"adaptive": adapt,
	} {
		l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(_ int, c *Config) { c.Controller = controller() })
		l.control()
		l.run(time.Second, nil)
		ch := l.open(1)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 16), Reliable: true})
		require.NoError(t, err)
		l.run(time.Second, nil)
		l.run(10*time.Second, func() {
			for range 10 { // 600 kB/s
				_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), NoMerge: true})
			}
		})
		for range 100 {
			_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 800), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		l.run(13*time.Second, nil)
		require.Zero(t, l.conns[1].Table().Unacked(), name)
	}
}

// TestRidingOpensTakeNoShare: copies of an open that is lost all the time, which ride with unreliable bunches far beyond the rate, don't take what
// reliable bunches may send later.
func TestRidingOpensTakeNoShare(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond}), 1, func(_ int, c *Config) { c.NetSpeed = 20_000 })
	l.control()
	l.run(time.Second, nil)
	l.tick = time.Millisecond
	ch := l.open(0)
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 16), Reliable: true})
	require.NoError(t, err)
	l.lose[0] = func(p []byte) bool { return len(p) > 30 } // all but acks
	burst := func() { _, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 40), NoMerge: true}) }
	l.run(5*time.Second, burst)
	require.False(t, ch.OpenAcked())
	l.lose[0] = nil
	for range 20 {
		_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 100), Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	l.run(3*time.Second, burst)
	require.Zero(t, l.conns[0].Table().Unacked()) // at a quarter of the rate a second is enough
}
