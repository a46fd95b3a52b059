package replay

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModel compares the window with a set of everything ever accepted.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		base := []uint64{0, 1 << 63, 1<<64 - 5000}[seed%3]
		var w Window
		seen := map[uint64]bool{}
		newest, some := uint64(0), false
		for range 5000 {
			seq := base + uint64(rng.IntN(2000))
			if rng.IntN(50) == 0 {
				base += uint64(rng.IntN(60))
			}
			want := !some || seq > newest || newest-seq < Size && !seen[seq]
			require.Equal(t, want, w.Check(seq), "seed %d, %d after %d", seed, seq, newest)
			if want && rng.IntN(4) > 0 { // otherwise it wasn't authentic
				w.Accept(seq)
				seen[seq] = true
				newest, some = max(newest, seq), true
			}
		}
	}
}

func TestAllOnes(t *testing.T) {
	var w Window
	require.True(t, w.Check(1<<64-1))
	w.Accept(1<<64 - 1)
	require.False(t, w.Check(1<<64-1), "the highest sequence is remembered too")
}

// TestLeap checks that a leap over more than the window forgets what was before, however far it is.
func TestLeap(t *testing.T) {
	for _, leap := range []uint64{Size - 1, Size, Size + 1, 3 * Size, 1 << 40, 1 << 62} {
		var w Window
		for seq := range uint64(Size) {
			w.Accept(seq)
		}
		newest := Size - 1 + leap
		w.Accept(newest)
		for back := range uint64(Size) {
			seq := newest - back
			require.Equal(t, seq >= Size && seq != newest, w.Check(seq), "%d back after a leap of %d", back, leap)
		}
		require.False(t, w.Check(newest-Size))
		require.True(t, w.Check(newest+1))
	}
}
