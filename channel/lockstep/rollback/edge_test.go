package rollback_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestDarkForAboutDropAfter: where paths are dark for about as long as DropAfter some players drop some others, each at its own time, before they hear each
// other again. Some play on, they are of one mind about who does, and all others know that they are out.
func TestDarkForAboutDropAfter(t *testing.T) {
	for seed := range some(40, 800) {
		rng := rand.New(rand.NewPCG(seed, 77))
		players := 2 + rng.IntN(7)
		set := netsim.Settings{Loss: float64(rng.IntN(3) * 5), LagMin: 10 * time.Millisecond, LagMax: time.Duration(10+rng.IntN(80)) * time.Millisecond}
		r := newParty(t, seed, players, set, func(_ int, c *rollback.Config) { c.DropAfter = time.Second })
		r.run(1200 * time.Millisecond)
		part, mode := rng.IntN(1<<players), rng.IntN(3)
		for a := range players {
			for b := range a {
				there, back := r.wires[[2]int{a, b}], r.wires[[2]int{b, a}]
				switch mode {
				case 0: // two parts
					there.dark = part>>a&1 != part>>b&1
					back.dark = there.dark
				case 1: // some pairs
					there.dark = rng.IntN(3) == 0
					back.dark = there.dark
				case 2: // some paths, one way
					there.dark, back.dark = rng.IntN(3) == 0, rng.IntN(3) == 0
				}
			}
		}
		r.run(950*time.Millisecond + time.Duration(rng.IntN([]int{250, 2000}[rng.IntN(2)]))*time.Millisecond)
		for _, w := range r.wires {
			w.dark = false
		}
		r.run(6 * time.Second)
		alive, frames := uint8(0), [8]int64{}
		for i, m := range r.machines {
			if frames[i] = m.Frame(); m.err == nil {
				alive |= 1 << i
			}
		}
		r.run(500 * time.Millisecond)
		require.NotZero(t, alive, "seed %d: the game is over for all", seed)
		for i, m := range r.machines {
			if alive>>i&1 == 0 {
				require.ErrorIs(t, m.err, rollback.ErrDropped, "seed %d", seed)
				continue
			}
			require.NoError(t, m.err, "seed %d", seed)
			require.Equal(t, alive, m.Active(), "seed %d: %d", seed, i)
			require.Greater(t, m.Frame(), frames[i]+20, "seed %d: %d waits for %b", seed, i, m.Waiting())
		}
		r.agree()
	}
}
