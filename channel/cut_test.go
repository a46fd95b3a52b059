package channel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCut: a payload goes in no fewer parts than it must, each of which fits a packet of the base size, and in more only where that saves a packet
// for every two.
func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	finer := 0
	for range 20_000 {
		table := &Table{single: 1400 + r.IntN(9000)}
		(*Machine)(table).SetPacketBits(1000 + r.IntN(64_000))
		bits := 1 + r.IntN(64<<13)
		fewest := table.parts(bits)
		n := table.cut(bits, fewest)
		require.GreaterOrEqual(t, n, fewest)
		require.LessOrEqual(t, (bits+n-1)/n, table.single)
		if n > fewest {
			finer++
			require.LessOrEqual(t, n-fewest, 2*(table.packets(bits, fewest)-table.packets(bits, n)))
		}
	}
	require.Greater(t, finer, 1000)

	table := &Table{single: 7627, packet: 8*1439 - 309} // PlainSalted's
	for bits, want := range map[int]int{7627: 1, 7628: 2, 1200 * 8: 2, 4096 * 8: 6, 32 << 13: 48, 64 << 13: 96} {
		require.Equal(t, want, table.cut(bits, table.parts(bits)), "%d bits", bits)
	}
}
