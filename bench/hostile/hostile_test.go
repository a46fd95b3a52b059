package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHostile is the command with fewer packets.
func TestHostile(t *testing.T) {
	n := 20_000
	if testing.Short() {
		n = 5000
	}
	for _, link := range []string{"netcode", "unreal", "salted"} {
		ok, err := run(link, n, 4096, 1)
		require.NoError(t, err, link)
		require.True(t, ok, "%s: see the table; seed 1", link)
	}
	_, err := run("none", 1, 1, 1)
	require.Error(t, err)
}
