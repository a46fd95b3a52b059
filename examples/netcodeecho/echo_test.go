package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var testKey = strings.Repeat("5a", 32)

// pair runs a server and clients over real sockets and returns the exit codes.
func pair(t *testing.T, serverArgs []string, clients ...[]string) (server int, client []int) {
	t.Helper()
	var o serverOptions
	o.addr, o.slots, o.seconds, o.protocol = "127.0.0.1:0", 4, 30, 7
	require.NoError(t, o.parse(append([]string{"--key", testKey}, serverArgs...)))
	s, err := newServer(o)
	require.NoError(t, err)
	code := make(chan int)
	go func() { code <- verdictCode(s.run()) }()
	addr := s.socket.LocalAddr().String()
	for _, args := range clients {
		args = append([]string{"client", "--server", addr, "--key", testKey, "--protocol", "7"}, args...)
		client = append(client, run(args))
	}
	return <-code, client
}

func TestEcho(t *testing.T) {
	s, c := pair(t, []string{"--clients", "2", "--packets", "300", "--payload", "1200"},
		[]string{"--packets", "300", "--payload", "1200", "--client-id", "5"}, []string{"--packets", "300", "--payload", "1200", "--client-id", "6"})
	require.Equal(t, 0, s)
	require.Equal(t, []int{0, 0}, c)
}

func TestCodes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	s, c := pair(t, []string{"--clients", "2", "--kick-after", "10"},
		[]string{"--packets", "10000", "--write-token", file}, // kicked
		[]string{"--packets", "5", "--client-id", "3"})
	require.Equal(t, 0, s)
	require.Equal(t, []int{10, 0}, c)
	require.FileExists(t, file)

	require.Equal(t, 2, run(nil))
	require.Equal(t, 2, run([]string{"client", "--server", "nowhere", "--key", testKey}))
	require.Equal(t, 2, run([]string{"client", "--server", "127.0.0.1:1", "--key", "12"}))
	require.Equal(t, 2, run([]string{"client", "--server", "127.0.0.1:1"}), "no key")
	require.Equal(t, 2, run([]string{"server", "--addr", "127.0.0.1:0"}), "no key")
	require.Equal(t, 2, run([]string{"server", "--addr", "127.0.0.1:0", "--key", testKey, "--max-clients", "1000000000000000000"}))
	require.Equal(t, 2, run([]string{"server", "--addr", "127.0.0.1:0", "--key", testKey, "--max-clients", "-1"}))
	require.Equal(t, 12, run([]string{"client", "--server", "127.0.0.1:9", "--key", testKey, "--timeout", "1"}), "request timed out")
	require.Equal(t, 16, run([]string{"client", "--server", "127.0.0.1:9", "--key", testKey, "--expire", "1"}), "token expired")
	require.Equal(t, 20, run([]string{"client", "--server", "127.0.0.1:9", "--key", testKey, "--seconds", "0.2"}), "out of time")
	require.NoError(t, os.WriteFile(file, []byte("no token"), 0o600))
	require.Equal(t, 15, run([]string{"client", "--token-file", file}), "invalid token")
}

// TestKeyIsNotShown: a key with a digit too few isn't in the error.
func TestKeyIsNotShown(t *testing.T) {
	for _, args := range [][]string{{"--key", testKey[1:]}, {"--key", testKey + "5"}, {"--key", "x" + testKey[1:]}} {
		err := clientMain(args)
		require.ErrorContains(t, err, "64 hex digits")
		require.NotContains(t, err.Error(), "a5a5")
		var o serverOptions
		err = o.parse(args)
		require.ErrorContains(t, err, "64 hex digits")
		require.NotContains(t, err.Error(), "a5a5")
	}
}

// TestFull: the second client of a server with one slot is denied while the first, which left without a word, still
// holds it.
func TestFull(t *testing.T) {
	s, c := pair(t, []string{"--max-clients", "1", "--clients", "1"},
		[]string{"--packets", "5", "--timeout", "2", "--no-disconnect"}, []string{"--client-id", "2"})
	require.Equal(t, 0, s)
	require.Equal(t, []int{0, 11}, c)
}
