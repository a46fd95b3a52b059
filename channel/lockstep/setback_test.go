package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// paced is a Transport that sends at the world's time, whatever the time of who sends is.
type paced struct {
	push
	w *world
}

// Send is Transport's.
func (s paced) Send(_ time.Duration, p []byte) error { return s.push.Send(s.w.now, p) }

// TestClockSetBack: the clock of the host, of a player or of all may be set back by any time: all that was due goes on, and nobody is dropped.
func TestClockSetBack(t *testing.T) {
	for i, back := range []time.Duration{time.Second, 24 * time.Hour} {
		for _, who := range []uint{0b1, 0b1000, 0b1111} { // the host is the last
			cfg := config(3)
			cfg.Stall = StallPolicy(i % 2)
			w := newWorld(t, 3, cfg, netsim.Settings{Loss: 5, LagMin: 30 * ms, LagMax: 40 * ms})
			w.connectWith = func(t Transport) Transport { return paced{t.(push), w} }
			w.now = 1_800_000_000 * time.Second
			var set [4]time.Duration
			step := func() {
				w.now += 5 * ms
				for i, p := range w.players {
					now := w.now - set[i]
					for d, ok := p.up.Pop(w.now); ok; d, ok = p.up.Pop(w.now) {
						_ = w.host.Receive(w.now-set[3], i, d)
					}
					for d, ok := p.down.Pop(w.now); ok; d, ok = p.down.Pop(w.now) {
						require.NoError(t, p.peer.Receive(now, d))
						if p.peer.State() == Running {
							require.Equal(t, now, p.peer.LastHeard())
						}
					}
					w.play(p)
					if at, ok := p.peer.NextDeadline(); ok && at <= now {
						p.peer.Tick(now)
					}
				}
				w.host.Tick(w.now - set[3])
				if at, ok := w.host.NextDeadline(); ok {
					require.InDelta(t, w.now-set[3], at, float64(time.Second))
				}
			}
			for p := range w.players {
				w.connect(p, 0)
			}
			for w.host.Ready() != w.cfg.mask() {
				step()
			}
			w.host.Start(w.now)
			for w.host.Turn() < 40 {
				step()
			}
			for i := range set {
				set[i] = time.Duration(who>>i&1) * back
			}
			for i, p := range w.players {
				p.peer.Tick(w.now - set[i])
				require.InDelta(t, w.now-set[i], p.peer.LastHeard(), float64(500*ms), "%b by %v", who, back)
			}
			for end := w.now + 4*time.Second; w.now < end; {
				step()
			}
			require.Greater(t, w.host.Turn(), int64(40+70), "%b by %v", who, back)
			require.Zero(t, w.host.Stats().Drops, "%b by %v", who, back)
			for _, p := range w.players {
				require.Greater(t, p.peer.Turn(), int64(40+70), "%b by %v", who, back)
				require.Less(t, p.peer.Stats().InputsLost, uint64(20), "%b by %v", who, back)
			}
		}
	}
}
