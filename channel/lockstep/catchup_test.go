package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestCatchUpOnABadPath: a player who is 400 kB of turns behind gets them within seconds, where packets overtake each other, and where some are lost, however long
// the turns are.
func TestCatchUpOnABadPath(t *testing.T) {
	for _, c := range []struct {
		loss, jitter float64
		rate         float64 // bytes a second, at least
		turn         time.Duration
	}{{0, 0, 200e3, 0}, {0, 25, 150e3, 0}, {5, 0, 55e3, 0}, {5, 25, 55e3, 0}, {10, 25, 35e3, 0}, {5, 0, 55e3, time.Second}, {5, 25, 55e3, 10 * time.Second}} {
		cfg := config(8)
		cfg.TurnInterval = c.turn
		w := newWorld(t, 3, cfg, netsim.Settings{Loss: c.loss, LagMin: 15 * ms, LagMax: 15*ms + time.Duration(c.jitter)*ms})
		w.start()
		w.run(time.Second)
		w.host.deactivate(w.now, 7, DropAsked)
		for w.host.log.end < 400_000 {
			w.host.complete(w.now, 0)
			for i := range 7 {
				w.host.clients[i].received = w.host.log.next
				w.host.clients[i].setInput(w.host.log.next, append([]byte{0x94, 1}, make([]byte, 148)...))
			}
		}
		p, to := w.players[7], &w.host.clients[7]
		from, began := to.ack, w.now
		for to.ack < to.streamEnd(&w.host.log) {
			next := w.now + 5*ms
			if c.turn > 0 { // nobody ticks but at a deadline, or when something has come
				at, _ := w.host.clientDeadline(to)
				mine, _ := p.peer.NextDeadline()
				next = min(at, mine)
				for _, l := range []*netsim.Link{p.up, p.down} {
					if at, ok := l.NextDeadline(); ok {
						next = min(next, at)
					}
				}
			}
			w.now = max(next, w.now+ms)
			for d, ok := p.up.Pop(w.now); ok; d, ok = p.up.Pop(w.now) {
				require.NoError(t, w.host.Receive(w.now, 7, d))
			}
			for d, ok := p.down.Pop(w.now); ok; d, ok = p.down.Pop(w.now) {
				require.NoError(t, p.peer.Receive(w.now, d))
			}
			for _, ok := p.peer.Next(); ok; _, ok = p.peer.Next() {
				require.NoError(t, p.peer.Done(1))
			}
			p.peer.Tick(w.now)
			w.host.still.tick(w.now, cfg.TurnInterval)
			w.host.flush(w.now, 7)
			require.Less(t, w.now-began, time.Minute, "%+v", c)
		}
		rate := float64(to.ack-from) / (w.now - began).Seconds()
		t.Logf("%+v: %.0f kB/s, %+v", c, rate/1000, p.peer.Stats())
		require.Greater(t, rate, c.rate, "%+v", c)
	}
}
