package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingPlayed: a verdict is about seeds that were played; an option that none draws isn't looked for for ever.
func TestNothingPlayed(t *testing.T) {
	for _, o := range []options{{jobs: 1, only: "nosuch", seeds: 3}, {jobs: 1, minutes: 1e-15}} {
		ok, err := swarm(o)
		require.Error(t, err)
		require.False(t, ok)
	}
	require.NoError(t, (&options{only: "coding"}).drawn())
}
