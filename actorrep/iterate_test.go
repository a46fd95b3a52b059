package actorrep_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// TestRemoveWhileIterating: loops over actors, components and connections yield each that stays once, and none that went.
func TestRemoveWhileIterating(t *testing.T) {
	t.Run("All", func(t *testing.T) {
		w := actorrep.NewServer(actorrep.Config{})
		register(t, w)
		for range 200 {
			require.NoError(t, w.Spawn(&rock{}))
		}
		for a := range w.All {
			require.NoError(t, w.Destroy(a))
		}
		require.Zero(t, w.Len())
	})
	t.Run("AllAtRandom", func(t *testing.T) {
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := actorrep.NewServer(actorrep.Config{})
			register(t, w)
			var all []*rock
			for range 300 {
				r := &rock{}
				require.NoError(t, w.Spawn(r))
				all = append(all, r)
			}
			seen := map[actorrep.Actor]int{}
			for a := range w.All {
				seen[a]++
				for range rng.IntN(6) {
					r := all[rng.IntN(len(all))]
					require.NoError(t, w.Destroy(r))
				}
				for range w.All { // one within another
					break
				}
				if len(all) < 400 && rng.IntN(4) == 0 {
					r := &rock{}
					require.NoError(t, w.Spawn(r))
					all = append(all, r)
				}
			}
			for _, r := range all {
				if r.World() != nil {
					require.Equal(t, 1, seen[r], "seed %d", seed)
				}
				require.LessOrEqual(t, seen[r], 1, "seed %d", seed)
			}
		}
	})
	t.Run("Children", func(t *testing.T) {
		w := actorrep.NewServer(actorrep.Config{})
		register(t, w)
		parent := &ship{}
		require.NoError(t, w.Spawn(parent))
		for range 6 {
			require.NoError(t, w.SpawnIn(parent, &rock{}))
		}
		n := 0
		for c := range parent.Children {
			n++
			require.NoError(t, w.Destroy(c))
		}
		require.Equal(t, 6, n)
		for range 6 {
			require.NoError(t, w.SpawnIn(parent, &rock{}))
		}
		n = 0
		for range parent.Children {
			if n++; n == 1 { // from the end, the first too
				for c := range parent.Children {
					require.NoError(t, w.Destroy(c))
				}
			}
		}
		require.Equal(t, 1, n)
		require.Equal(t, 1, w.Len())
	})
	t.Run("Peers", func(t *testing.T) {
		w := newWorld(t, 1, clean, actorrep.Config{})
		for range 5 {
			w.join()
		}
		n := 0
		for p := range w.Server.Peers {
			n++
			w.Server.RemoveConn(p)
		}
		require.Equal(t, 5, n)
		for range w.Server.Peers {
			t.Fatal("they went")
		}
	})
	t.Run("Relevant", func(t *testing.T) { // the game's own function removes
		var w *world
		w = newWorld(t, 1, clean, actorrep.Config{Relevant: func(p *actorrep.Peer, a actorrep.Actor) bool {
			if w.Rand.IntN(3) == 0 {
				require.NoError(t, w.Server.Destroy(a))
			}
			if w.Rand.IntN(100) == 0 {
				w.Server.RemoveConn(p)
			}
			return true
		}})
		for range 5 {
			w.join()
		}
		for range 300 {
			require.NoError(t, w.Server.Spawn(&rock{Size: 1}))
		}
		for range 20 {
			w.Server.Step(w.Now)
		}
		require.Less(t, w.Server.Len(), 300)
	})
}
