package rollback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestDarkWhileAgreeing: paths between those who agree on who is dropped may go dark for less than DropAfter meanwhile, one way or both: all who are left
// drop in the same frame and play on alike.
func TestDarkWhileAgreeing(t *testing.T) {
	for seed := range uint64(24) {
		r := newParty(t, seed, 4, netsim.Settings{Loss: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}, func(_ int, c *rollback.Config) {
			c.DropAfter = 2 * time.Second
		})
		r.run(3 * time.Second)
		r.wires[[2]int{2, 0}].dark = true
		r.run(time.Duration(seed%5) * 10 * time.Millisecond)
		r.machines[2].gone = true
		r.run(2*time.Second - 50*time.Millisecond + time.Duration(seed%7)*20*time.Millisecond)
		dark := [][2]int{{0, 1}, {1, 0}, {1, 3}, {3, 1}, {0, 3}, {3, 0}}
		for i, w := range dark {
			r.wires[w].dark = (seed+1)>>(uint(i)%5)&1 == 1
		}
		r.run(1500 * time.Millisecond)
		for _, w := range dark {
			r.wires[w].dark = false
		}
		r.run(10 * time.Second)
		r.agree()
		at := int64(-1)
		for _, p := range []int{0, 1, 3} {
			m := r.machines[p]
			require.NoError(t, m.err, "seed %d", seed)
			require.EqualValues(t, 0b1011, m.Active(), "seed %d", seed)
			require.Greater(t, m.Frame(), int64(60*8), "seed %d, player %d waits for %b", seed, p, m.Waiting())
			for _, e := range m.events {
				if e.Kind == rollback.Dropped {
					if at >= 0 {
						require.Equal(t, at, e.Frame, "seed %d", seed)
					}
					at = e.Frame
				}
			}
		}
	}
}

// TestHitch: a machine that stands still for less than the others' DropAfter is dropped by nobody and drops nobody, though it ticks before it reads what came.
func TestHitch(t *testing.T) {
	for _, hitch := range []time.Duration{time.Second, 4 * time.Second, 4900 * time.Millisecond} {
		r := newParty(t, 1, 3, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
		r.run(3 * time.Second)
		m := r.machines[0]
		m.gone = true
		r.run(hitch)
		m.gone = false
		m.Tick(r.now)
		m.next = r.now
		r.run(5 * time.Second)
		r.agree()
		for _, o := range r.machines {
			require.NoError(t, o.err)
			require.EqualValues(t, 0b111, o.Active(), "hitch of %v", hitch)
			require.Greater(t, o.Frame(), int64(60*7))
		}
	}
}
