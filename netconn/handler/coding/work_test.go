package coding

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorkFollowsTheBytes: symbols of a byte, beside rows as long as a packet, again and again in late packets, or in new ones behind which as many are missing, cost no more
// than bytes that came are worth.
func TestWorkFollowsTheBytes(t *testing.T) {
	const overdraft = (2*maxRows + MaxWindow) * (1024 + rowWork)
	for _, step := range []int64{0, 1, 2, 5} {
		var d Decoder
		came := uint64(0)
		add := func(id int64, n int) {
			d.Add(id, make([]byte, n))
			came += uint64(n) + callBytes
		}
		symbol := func(carrier int64, k int, c Cover, n int) {
			require.NoError(t, d.Symbol(carrier, k, c, make([]byte, n)))
			came += uint64(n)
		}
		add(0, 1)
		for i := range int64(15) {
			symbol(17+i, 0, 0xffff>>i, 990)
			if i > 0 {
				add(17+i, 1)
			}
		}
		for i := range int64(20_000) {
			id := 17 + step*i
			if i%16 == 0 && step > 0 {
				symbol(id, 0, 0xffff, 990)
			}
			for k := range MaxSymbols {
				symbol(id, k, 0xffff, 1)
			}
			if step > 0 {
				add(id, 1)
			}
		}
		require.LessOrEqual(t, d.Counters.Combined, mostWork+overdraft+workEach*came, step)
	}
}

// TestNothingHonestIsTooDear: packets of any sizes, small ones behind large ones, with losses of any kind, are repaired with all their symbols.
func TestNothingHonestIsTooDear(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 6))
		loss, burst, most := rng.IntN(70), rng.IntN(8), 1+rng.IntN(1000)
		var e Encoder
		var d Decoder
		lost := 0
		for id := range int64(400) {
			c, size := e.Covers(id, 1+rng.IntN(MaxWindow))
			n := 1 + rng.IntN(most)
			if rng.IntN(4) > 0 {
				n = 1 + rng.IntN(30)
			}
			if lost--; lost < 0 && rng.IntN(100) < loss {
				lost = rng.IntN(1 + burst)
			}
			arrives := lost < 0
			for k := range rng.IntN(MaxSymbols + 1) {
				if c > 0 {
					if s := e.AppendSymbol(nil, id, k, c, size); arrives {
						require.NoError(t, d.Symbol(id, k, c, s))
					}
				}
			}
			content := make([]byte, n)
			for i := range content {
				content[i] = uint8(1 + rng.IntN(255))
			}
			e.Add(id, content, rng.IntN(5) == 0)
			if arrives {
				d.Add(id, content)
			}
		}
		require.Zero(t, d.Counters.TooDear, "seed %d", seed)
	}
}
