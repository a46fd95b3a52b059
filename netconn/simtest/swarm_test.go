package simtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/simtest/exercise"
)

// TestSeeds plays a hundred seeds of everything. go run ./bench/swarm plays as many as you like, and .ci/run has it play a thousand.
func TestSeeds(t *testing.T) {
	seeds := 100
	if testing.Short() {
		seeds = 60
	}
	const workers = 4
	for worker := range workers {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for seed := worker + 1; seed <= seeds; seed += workers {
				s := exercise.Draw(uint64(seed))
				if r := exercise.Play(s); !r.OK() {
					t.Errorf("%v\ngo run ./bench/swarm -first %d -seeds 1 shrinks it\n%v", &r, seed, s)
				}
			}
		})
	}
}

// TestScripts plays the scripts that once failed.
func TestScripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b, err := os.ReadFile(name)
			require.NoError(t, err)
			s, err := simtest.Parse(string(b))
			require.NoError(t, err)
			r := exercise.Play(s)
			require.True(t, r.OK(), "%v", &r)
		})
	}
}

// TestSameSeedSameBytes plays seeds twice.
func TestSameSeedSameBytes(t *testing.T) {
	for seed := range uint64(25) {
		s := exercise.Draw(seed)
		first, again := exercise.Play(s), exercise.Play(s)
		require.Equal(t, first.Hash, again.Hash, "seed %d", seed)
		require.Equal(t, first.Counters, again.Counters, "seed %d", seed)
	}
}
