package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCheck: a host and two guests play, one of them by the relay.
func TestCheck(t *testing.T) {
	var out bytes.Buffer
	err := check(t.Context(), &out, options{seed: 1, seconds: 1})
	require.NoError(t, err, out.String())
	require.Contains(t, out.String(), "\nPASS")
}

// TestOpenRefuses: what no player could reach is told, and nothing stays open.
func TestOpenRefuses(t *testing.T) {
	for _, o := range []options{{serve: "127.0.0.1:0", relay: "127.0.0.1:0", relayAddr: "here"}, {serve: "127.0.0.1:0", relay: "nowhere", relayAddr: "127.0.0.1"},
		{serve: "127.0.0.1:0", relay: "127.0.0.1:0", relayAddr: "127.0.0.1", relayTLS: "127.0.0.1:0"}, {serve: "nowhere", relay: "127.0.0.1:0", relayAddr: "127.0.0.1"},
		{serve: "127.0.0.1:0", relay: "127.0.0.1:0", relayAddr: "127.0.0.1", cert: "missing"}} {
		_, err := open(o)
		require.Error(t, err)
	}
}
