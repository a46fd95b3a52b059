// Package guide tests the lengths of the guide's programs, and that they say why there is no connection. bench/docs_test.go tests that the guide says what they do.
package guide

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLengths keeps the steps short enough to be read.
func TestLengths(t *testing.T) {
	mains, err := filepath.Glob("[0-9]-*/main.go")
	require.NoError(t, err)
	require.Len(t, mains, 7)
	for _, path := range mains {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		n := bytes.Count(b, []byte("\n"))
		require.True(t, n >= 60 && n <= 165, "%s has %d lines", path, n)
	}
}

// TestTheyAskWhy: no step goes on as if nothing had happened when a client finds no server.
func TestTheyAskWhy(t *testing.T) {
	mains, err := filepath.Glob("[0-9]-*/main.go")
	require.NoError(t, err)
	for _, path := range append(mains, "../replicate/main.go") {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Regexp(t, `\.Err\(\)(; err != nil| // why|\) // why)`, string(b), path)
	}
}
