package netconn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLossAmidReordering: where packets overtake each other all the time and some are lost, late ones are waited for: what is told lost is what the
// network lost, and little more.
func TestLossAmidReordering(t *testing.T) {
	const ms = time.Millisecond
	for _, each := range []int{2, 10, 40} { // packets a tick
		for _, loss := range []float64{5, 10, 20} {
			for seed := uint64(1); seed <= 2; seed++ {
				l := newLab(t, both(netsim.Settings{Lag: 50 * ms, LagVariance: 15 * ms}), seed, func(_ int, c *Config) { c.NetSpeed = 10_000_000 })
				l.fine = ms
				rng, dropped := rand.New(rand.NewPCG(seed, 3)), 0
				for i := range l.lose {
					l.lose[i] = func([]byte) bool {
						lose := rng.Float64()*100 < loss
						if lose && i == 0 {
							dropped++
						}
						return lose
					}
				}
				l.control()
				l.run(2*time.Second, nil)
				ch := l.open(0)
				_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
				require.NoError(t, err)
				l.run(time.Second, nil)
				game := func() {
					for range each {
						_, err := ch.SendBunch(&bunch.Out{Data: labMsg(l.now, 0, 900), NoMerge: true})
						require.NoError(t, err)
						l.conns[0].FlushWritten(l.now)
					}
				}
				l.run(5*time.Second, game)
				before, droppedBefore, sentBefore := l.conns[0].Counters, dropped, l.packets[0]
				l.lat[1] = nil
				l.run(10*time.Second, game)
				n := l.conns[0].Counters
				lost, acked := float64(n.PacketsLost-before.PacketsLost), float64(n.PacketsAcked-before.PacketsAcked)
				took := 100 * float64(dropped-droppedBefore) / float64(l.packets[0]-sentBefore)
				t.Logf("%d packets a tick, %.1f %% lost, seed %d: told %.1f %%, median latency %v, 95 %% %v", each, took, seed, 100*lost/(lost+acked), quant(l.lat[1], .5), quant(l.lat[1], .95))
				require.Less(t, 100*lost/(lost+acked), took+3, "%d packets a tick, %g %% lost, seed %d", each, loss, seed)
			}
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
