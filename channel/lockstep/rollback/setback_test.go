package rollback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestClockSetBack: clocks may be set back by any time: packets go on, and nobody is dropped or waited for; so it is with a spectator's.
func TestClockSetBack(t *testing.T) {
	for _, back := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, 24 * time.Hour} {
		r := newParty(t, 1, 2, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
		r.run(time.Second)
		// Nothing is on its way, and both clocks are set back.
		for _, link := range r.wires {
			for ok := true; ok; {
				_, ok = link.link.Pop(r.now + time.Minute)
			}
		}
		r.now -= back
		for p, m := range r.machines {
			m.next = r.now
			link, err := netsim.NewLink(netsim.Settings{Lag: 30 * time.Millisecond}, uint64(p))
			require.NoError(t, err)
			r.wires[[2]int{p, 1 - p}].link = link
		}
		from := r.machines[0].Frame()
		r.run(3 * time.Second)
		for _, m := range r.machines {
			require.NoError(t, m.err, "by %v", back)
			require.EqualValues(t, 0b11, m.Active(), "by %v", back)
			require.Greater(t, m.Frame(), from+60, "by %v", back)
			require.InDelta(t, r.now, m.NextDeadline(), float64(1100*time.Millisecond), "by %v", back)
		}
		said := &counter{}
		w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: 2, InputSize: 2}, 2, 0, &sums{}, said)
		require.NoError(t, err)
		w.Tick(r.now + back)
		w.Tick(r.now)
		require.Equal(t, 2, said.packets, "by %v", back)
	}
}
