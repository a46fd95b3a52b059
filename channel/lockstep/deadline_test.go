package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDeadlines ticks nobody but at a deadline or after a packet, and the game goes on as well. Deadlines
// that are over after a Tick would spin.
func TestDeadlines(t *testing.T) {
	for seed := range uint64(6) {
		cfg := config(3)
		cfg.Stall = StallPolicy(seed % 2)
		w := newWorld(t, seed, cfg, bad(float64(seed*5)))
		for i := range w.players {
			w.connect(i, 0)
		}
		began, steps := w.now, 0
		for ; w.host.Turn() < 300; steps++ {
			w.now = w.wake()
			w.woken()
			if w.host.Ready() == w.cfg.mask() {
				w.host.Start(w.now)
			}
			require.Less(t, w.now-began, time.Minute, "seed %d", seed)
		}
		require.InDelta(t, 15, (w.now - began).Seconds(), 5, "seed %d", seed)
		require.Less(t, steps, 300*60, "seed %d: it spins", seed)
		require.Zero(t, w.host.Stats().Desyncs)
	}
}

// wake is when something has to be done next, and not before now.
func (w *world) wake() time.Duration {
	at := w.now + time.Second
	earliest := func(t time.Duration, ok bool) {
		if ok {
			at = max(min(at, t), w.now)
		}
	}
	earliest(w.host.NextDeadline())
	for _, p := range w.players {
		earliest(p.peer.NextDeadline())
		earliest(p.up.NextDeadline())
		earliest(p.down.NextDeadline())
		earliest(p.nextTurn, p.peer.recv.ready > 0)
	}
	return at
}

func (w *world) woken() {
	heard := false
	for _, p := range w.players {
		came := false
		for d, ok := p.up.Pop(w.now); ok; d, ok = p.up.Pop(w.now) {
			w.toHost(p, d)
			heard = true
		}
		for d, ok := p.down.Pop(w.now); ok; d, ok = p.down.Pop(w.now) {
			w.toPeer(p, d)
			came = true
		}
		w.play(p)
		if at, ok := p.peer.NextDeadline(); ok && at <= w.now || came {
			p.peer.Tick(w.now)
		}
	}
	if at, ok := w.host.NextDeadline(); ok && at <= w.now || heard {
		w.host.Tick(w.now)
		at, ok := w.host.NextDeadline()
		if ok && at <= w.now {
			w.t.Fatalf("seed %d: after a Tick at %v the host's deadline is %v", w.seed, w.now, at)
		}
	}
}

// TestNoDeadlineForWhoIsGone: a host that sleeps until its deadlines, and wakes late, sleeps on when a player has gone.
func TestNoDeadlineForWhoIsGone(t *testing.T) {
	for late := 100 * time.Microsecond; late < 50*ms; late += 1100 * time.Microsecond {
		tb := startedTable(t, config(2))
		for range 20 {
			tb.turn(nil)
		}
		gone := tb.now
		for at, ok := tb.host.NextDeadline(); ok; at, ok = tb.host.NextDeadline() {
			if at <= tb.now && tb.now > gone+tb.host.cfg.DropAfter+time.Second {
				t.Fatalf("%v late: at %v the deadline is %v", late, tb.now-gone, at-gone)
			}
			tb.now = max(tb.now, at) + late
			tb.host.Tick(tb.now)
			for _, b := range tb.down {
				b.take(func([]byte) {})
			}
		}
	}
}
