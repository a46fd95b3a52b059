package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

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

// One packet in a thousand that comes late costs the others nothing, under loss.
func TestSeldomLatePacketsCostNothing(t *testing.T) {
	p99 := func(order float64, delay time.Duration, loss float64) (unreliable, reliable time.Duration) {
		l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond, Loss: loss, Order: order, OrderDelay: delay}), 3, func(_ int, c *Config) { c.NetSpeed = 1_000_000 })
		l.fine = time.Millisecond
		ch := l.control()
		l.run(200*time.Second, func() {
			if ch.Room() > 2 {
				_, _ = ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, 64), Reliable: true, NoMerge: true})
			}
			_, _ = ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, 100), NoMerge: true})
		})
		return quant(l.lat[1], .95), quant(l.rlat[1], .99)
	}
	for _, loss := range []float64{5, 20} {
		u0, r0 := p99(0, 0, loss)
		u, r := p99(0.1, 45*time.Millisecond, loss)
		t.Logf("loss %v: unreliable p95 %v -> %v, reliable p99 %v -> %v", loss, u0, u, r0, r)
		if u > u0+10*time.Millisecond || r > r0+r0/4 {
			t.Errorf("loss %v: unreliable p95 %v -> %v, reliable p99 %v -> %v", loss, u0, u, r0, r)
		}
	}
	u, r := p99(5, 200*time.Millisecond, 0)
	if u > 35*time.Millisecond {
		t.Errorf("packets 200 ms late are waited for in vain: unreliable p95 %v, reliable p99 %v", u, r)
	}
}

// A close with a little waiting on a healthy path, just when the peer opens and closes channels itself.
func TestCloseWhileChannelsComeAndGo(t *testing.T) {
	lost, slow := 0, 0
	for seed := range uint64(200) {
		l := newLab(t, both(netsim.Settings{Lag: 20 * time.Millisecond, Loss: float64(seed % 2 * 10), LagVariance: 5 * time.Millisecond}), seed, func(_ int, c *Config) {
			c.Secret = seed * 7
			c.LingerTimeout = 10 * time.Second
		})
		var theirs []*channel.Channel
		l.accept[1] = func(ch *channel.Channel) { theirs = append(theirs, ch) }
		l.join()
		var mine []*channel.Channel
		n := 0
		sent := [2]int{}
		base := l.got
		l.run(time.Duration(seed%13)*50*time.Millisecond, func() {
			n++
			mine = append(mine, l.open(0))
			for _, ch := range mine {
				if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 30), Reliable: true}); err == nil {
					sent[0] += 30
				}
			}
			if len(mine) > 5 {
				require.NoError(t, mine[0].Close(bunch.Destroyed))
				mine = mine[1:]
			}
		})
		l.conns[0].Close(l.now, "bye")
		start := l.now
		for l.now-start < 20*time.Second && (l.res[0] == nil || l.res[1] == nil) {
			l.step(nil)
		}
		if l.got[1]-base[1] != sent[0] && l.res[0].Unacked == 0 {
			lost++
			t.Logf("seed %d: %d of %d, %v %v", seed, l.got[1]-base[1], sent[0], l.res[0], l.res[1])
		}
		if l.now-start > 5*time.Second {
			slow++
		}
	}
	t.Logf("%d lost unlisted, %d lingered, of 200", lost, slow)
	require.Zero(t, lost)
	require.LessOrEqual(t, slow, 2)
}

// TestDarkAgainIsNoRefusal: a fast path goes dark again as soon as it has told that all of a wide window was lost. Nothing was refused.
func TestDarkAgainIsNoRefusal(t *testing.T) {
	for _, light := range []time.Duration{310, 350, 450} {
		l := newLab(t, both(netsim.Settings{Lag: 150 * time.Millisecond}), 1, func(_ int, c *Config) { c.Timeout, c.KeepAlive, c.NetSpeed = -1, 10*time.Millisecond, 1_000_000 })
		l.tick = time.Millisecond
		l.control()
		l.run(time.Second, nil)
		talk := l.talkers(bunch.Out{Data: make([]byte, 20), Reliable: true, NoMerge: true}, 15)
		l.run(3*time.Second, talk)
		for i := range 4 {
			l.dark = [2]bool{true, i%2 == 0}
			l.run(15*time.Second, talk)
			l.dark = [2]bool{}
			l.run(light*time.Millisecond, talk)
		}
		got := l.got
		l.run(4*time.Second, talk)
		require.Nil(t, l.res[0], "%v ms", light)
		require.Nil(t, l.res[1], "%v ms", light)
		require.Greater(t, l.got[0], got[0])
		require.Greater(t, l.got[1], got[1])
	}
}
