package main

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNAT: players behind real routers find the path that they should, and keep their game when it changes. The long form has all pairs of routers, the
// other one those with an open one.
func TestNAT(t *testing.T) {
	if testing.Short() {
		t.Skip("it connects players behind routers for half a minute; go test without -short")
	}
	only := "open"
	if os.Getenv("CI") != "" {
		only = ""
	}
	var out bytes.Buffer
	err := run(t.Context(), &out, 1, only)
	if errors.Is(err, errNoNetworks) {
		t.Skip(err)
	}
	require.NoError(t, err, out.String())
	require.Contains(t, out.String(), "\nPASS")
	t.Log("\n" + out.String())
}
