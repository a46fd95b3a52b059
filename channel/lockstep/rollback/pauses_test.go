package rollback_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestPausesBeyondDropAfter: machines that stand still again and again for about as long as DropAfter drop each other, and read what others said of them long
// after those were out themselves. Whatever happens some play on, they are of one mind about who does, and all others know that they are out.
func TestPausesBeyondDropAfter(t *testing.T) {
	seeds := []uint64{739, 2049, 2682} // with these the game was over for all
	for seed := range some(6, 150) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		pauses(t, seed)
	}
}

func pauses(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 79))
	players, drop := 3+rng.IntN(3), 300*time.Millisecond
	r := newParty(t, seed, players, netsim.Settings{Loss: float64(rng.IntN(3) * 5), LagMin: 5 * time.Millisecond, LagMax: 5*time.Millisecond + time.Duration(rng.IntN(80))*time.Millisecond},
		func(_ int, c *rollback.Config) { c.DropAfter = drop })
	r.run(500 * time.Millisecond)
	wake := make([]time.Duration, players)
	for range 40 {
		if p := rng.IntN(players); !r.machines[p].gone {
			r.machines[p].gone, wake[p] = true, r.now+time.Duration(rng.Int64N(int64(drop)*3/2))
		}
		r.run(time.Duration(rng.IntN(200)) * time.Millisecond)
		for p, m := range r.machines {
			if m.gone && r.now >= wake[p] {
				m.gone, m.next = false, r.now
			}
		}
	}
	for _, m := range r.machines {
		if m.gone {
			m.gone, m.next = false, r.now
		}
	}
	r.run(6 * time.Second)
	r.oneMind(seed)
}

// oneMind sees to it that some play on, and all others know that they are out.
func (r *party) oneMind(seed uint64) {
	r.t.Helper()
	alive, frames := uint8(0), [8]int64{}
	for i, m := range r.machines {
		if frames[i] = m.Frame(); m.err == nil {
			alive |= 1 << i
		}
	}
	require.NotZero(r.t, alive, "seed %d: the game is over for all", seed)
	r.run(500 * time.Millisecond)
	for i, m := range r.machines {
		if alive>>i&1 == 0 {
			require.ErrorIs(r.t, m.err, rollback.ErrDropped, "seed %d", seed)
			continue
		}
		require.NoError(r.t, m.err, "seed %d", seed)
		require.Equal(r.t, alive, m.Active(), "seed %d: %d", seed, i)
		require.Greater(r.t, m.Frame(), frames[i]+15, "seed %d: %d waits for %b", seed, i, m.Waiting())
	}
	r.agree()
}
