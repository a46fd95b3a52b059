package simtest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest/exercise"
)

var update = flag.Bool("update", false, "write testdata/hashes.golden anew")

// TestGoldenHashes: the same seeds, those that draw coding among them, give the same bytes on every machine. A change that alters what is sent, or
// when, alters the hashes; -update writes them anew.
func TestGoldenHashes(t *testing.T) {
	const name = "testdata/hashes.golden"
	var b strings.Builder
	for seed, coded := uint64(1), 0; seed <= 24 || coded < 4; seed++ {
		s := exercise.Draw(seed)
		if s.Option("coding") != "" {
			coded++
		} else if seed > 24 {
			continue
		}
		r := exercise.Play(s)
		require.True(t, r.OK(), "%v", &r)
		fmt.Fprintf(&b, "seed %d: %d datagrams, %016x\n", seed, r.Counters.Sent, r.Hash)
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "if what is sent was meant to change: go test ./netconn/simtest -run Golden -update")
}
