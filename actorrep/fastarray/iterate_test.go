package fastarray_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
)

// TestRemoveWhileIterating: a loop over a list yields each element that stays once, and none that went.
func TestRemoveWhileIterating(t *testing.T) {
	var l fastarray.List[uint16]
	for i := range 10 {
		_, err := l.Add(uint16(i))
		require.NoError(t, err)
	}
	for id := range l.All {
		require.NoError(t, l.Remove(id))
	}
	require.Zero(t, l.Len())
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var l fastarray.List[uint16]
		var ids []fastarray.ID
		add := func() {
			id, err := l.Add(uint16(len(ids)))
			require.NoError(t, err)
			ids = append(ids, id)
		}
		for range 50 {
			add()
		}
		seen := map[fastarray.ID]int{}
		for id := range l.All {
			seen[id]++
			for range rng.IntN(4) {
				_ = l.Remove(ids[rng.IntN(len(ids))]) // some aren't there
			}
			if len(ids) < 80 && rng.IntN(3) == 0 {
				add()
			}
			if rng.IntN(100) == 0 {
				require.NoError(t, l.Clear())
			}
		}
		for _, id := range ids {
			if _, ok := l.Find(id); ok {
				require.Equal(t, 1, seen[id], "seed %d", seed)
			}
			require.LessOrEqual(t, seen[id], 1, "seed %d", seed)
		}
	}
}
