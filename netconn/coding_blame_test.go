package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSymbolsThatFillThePath: where symbols are what overflows a queue too short to be measured, they stay away where much gets lost by it.
func TestSymbolsThatFillThePath(t *testing.T) {
	for _, c := range []struct {
		passes, loss float64
		queue        time.Duration
		adaptive     bool
	}{{50_000, 0, 20 * time.Millisecond, false}, {50_000, 3, 40 * time.Millisecond, true}, {20_000, 0, 20 * time.Millisecond, false}, {20_000, 10, 20 * time.Millisecond, true}} {
		way := netsim.Settings{Lag: 20 * time.Millisecond, Loss: c.loss}
		narrow := way
		narrow.Bandwidth, narrow.QueueDelay = 8*c.passes, c.queue
		l := newLab(t, [2]netsim.Settings{narrow, way}, 1, func(_ int, cfg *Config) {
			cfg.Coding, cfg.Controller = Coding{Repairs: 3, Adaptive: c.adaptive}, adapt()
		})
		l.tick, l.fine = 16*time.Millisecond, 2*time.Millisecond
		l.join()
		ch := l.open(0)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 16), Reliable: true})
		require.NoError(t, err)
		game := func() {
			for range 2 {
				if l.conns[0].IsNetReady() {
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, int(c.passes*0.006)), NoMerge: true})
					require.NoError(t, err)
				}
			}
		}
		l.run(20*time.Second, game)
		l.offered[0] = 0
		l.run(time.Minute, game)
		require.Nil(t, l.res[0])
		offered := float64(l.offered[0]) / 60 / c.passes
		t.Logf("%+v: %.2f times what passes", c, offered)
		require.Less(t, offered, 1.3, "%+v", c)
	}
}

// TestSymbolsThatFillThePathInWaves: reliable bunches at three quarters of a path that itself loses nothing. What is lost comes in waves, as the rate follows it, so that it never
// is above a fifth for 10 s, and no look begins.
func TestSymbolsThatFillThePathInWaves(t *testing.T) {
	const passes = 100_000
	for _, repairs := range []float64{0, 3} {
		way := netsim.Settings{Lag: 30 * time.Millisecond, LagVariance: 5 * time.Millisecond}
		narrow := way
		narrow.Bandwidth, narrow.QueueDelay = 8*passes, 20*time.Millisecond
		l := newLab(t, [2]netsim.Settings{narrow, way}, 372, func(_ int, cfg *Config) {
			cfg.Coding, cfg.Controller = Coding{Repairs: repairs, Adaptive: true}, adapt()
		})
		l.tick, l.fine = 16*time.Millisecond, 2*time.Millisecond
		l.join()
		ch := l.open(0)
		game := func() {
			for range 2 {
				if l.conns[0].IsNetReady() && ch.Room() > 8 {
					_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 560), NoMerge: true, Reliable: true})
					require.NoError(t, err)
				}
			}
		}
		l.run(30*time.Second, game)
		l.offered[0] = 0
		before := l.conns[0].Counters
		l.run(time.Minute, game)
		after := l.conns[0].Counters
		offered := float64(l.offered[0]) / 60 / passes
		t.Logf("%v symbols: %.2f times what passes, %.2f lost", repairs, offered, float64(after.PacketsLost+after.PacketsRepaired-before.PacketsLost-before.PacketsRepaired)/float64(after.PacketsSent-before.PacketsSent))
		require.Less(t, offered, 1.3)
	}
}

// TestSymbolsForMuchLoss: where the path itself loses much, or all now and then, symbols leave as before; so they do where jitter has them repair packets that are only late.
func TestSymbolsForMuchLoss(t *testing.T) {
	for seed, c := range []struct {
		loss   float64
		every  int // so many seconds one is dark
		jitter time.Duration
	}{{loss: 30}, {loss: 50}, {loss: 3, every: 10}, {loss: 3, every: 4}, {loss: 5, jitter: 30 * time.Millisecond}} {
		l, game := talkingLab(t, uint64(seed), netsim.Settings{Lag: 30 * time.Millisecond, Loss: c.loss, Jitter: c.jitter}, func(_ int, cfg *Config) {
			cfg.Coding, cfg.ReorderWindow = Coding{Repairs: 1}, 0
		})
		l.lose[0] = func([]byte) bool { return c.every > 0 && int(l.now/time.Second)%c.every == 1 }
		l.run(time.Minute, game)
		n := l.conns[0].Counters
		t.Logf("%+v, seed %d: %.2f symbols a packet", c, seed, float64(n.Repairs)/float64(n.PacketsSent))
		require.Greater(t, float64(n.Repairs), 0.9*float64(n.PacketsSent), "%+v", c)
	}
}

// TestWhenSymbolsAreSuspected: a look begins once much has been lost for 10 s without a pause, is judged by its own packets behind the first of each block, and comes ever more seldom.
func TestWhenSymbolsAreSuspected(t *testing.T) {
	const tick, inFlight = 20 * time.Millisecond, 5
	var b blame
	now, id := time.Duration(0), int64(1)
	var left []bool // of the packets in flight: without symbols
	// send has packets sent until a time or the beginning of a look, each with its fate by whether it has symbols and its place in its block.
	send := func(until time.Duration, lost func(symbols bool, at int64) bool) {
		for first := b.first; now < until && (first != 0 || b.first == 0); id++ {
			now += tick
			left = append(left, b.leaveOut(id))
			if old := id - inFlight; old > 0 {
				at := int64(-1)
				if b.first != 0 && old >= b.first {
					at = (old - b.first) % blockPackets
				}
				b.fate(now, old, id+1, lost(!left[old-1], at), false, 0.5)
			}
		}
	}
	all := func(bool, int64) bool { return true }
	none := func(bool, int64) bool { return false }
	symbols := func(has bool, _ int64) bool { return has }

	send(2*time.Second, func(_ bool, _ int64) bool { return id%3 == 0 })
	require.Zero(t, b.first)
	send(40*time.Second, none)
	require.Zero(t, b.since)
	began := now
	send(time.Hour, all)
	require.NotZero(t, b.first)
	require.InDelta(t, 10, (now - began).Seconds(), 0.2)

	// The first packets of a block don't count. Of the others one is enough.
	first := b.first
	send(now+blocksTried*blockPackets*tick+time.Second, func(has bool, at int64) bool {
		return has && at == blockSkip || !has && at < blockSkip
	})
	require.True(t, b.away)
	require.Zero(t, b.first)
	require.True(t, b.leaveOut(id))
	require.GreaterOrEqual(t, id-first, int64(blocksTried*blockPackets))
	since := now

	// They are looked at again a minute later, and are away again at once if it is still so.
	send(time.Hour, none)
	require.InDelta(t, symbolsAway.Seconds(), (now - since).Seconds(), 1.1)
	send(now+blocksTried*blockPackets*tick+time.Second, symbols)
	require.True(t, b.away)

	// Where both kinds get lost the look ends with the first block without.
	send(time.Hour, all)
	for _, wait := range []float64{20, 40, 80, 160, 240, 240} {
		began = now
		send(now+3*blockPackets*tick, all)
		require.Zero(t, b.first)
		send(time.Hour, all)
		require.InDelta(t, wait+2*blockPackets*tick.Seconds(), (now - began).Seconds(), 0.3)
	}
}

// TestSymbolsWhereLossIsPeriodic: a path that is dark for 0.3 s of each second, or of about as long as two blocks of packets take, keeps its symbols.
func TestSymbolsWhereLossIsPeriodic(t *testing.T) {
	for seed := range uint64(2) {
		period := []time.Duration{time.Second, 1067 * time.Millisecond}[seed%2]
		l, game := talkingLab(t, seed, netsim.Settings{Lag: 30 * time.Millisecond, Loss: 5}, func(_ int, cfg *Config) { cfg.Coding, cfg.ReorderWindow = Coding{Repairs: 1}, 0 })
		l.lose[0] = func([]byte) bool {
			return (l.now+time.Duration(seed)*250*time.Millisecond)%period < 300*time.Millisecond
		}
		l.run(90*time.Second, game)
		n := l.conns[0].Counters
		t.Logf("%v, seed %d: %.2f symbols a packet", period, seed, float64(n.Repairs)/float64(n.PacketsSent))
		require.Greater(t, float64(n.Repairs), 0.9*float64(n.PacketsSent), "%v, seed %d", period, seed)
	}
}
