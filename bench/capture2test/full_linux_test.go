package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFullDisk: a capture or a test that the disk has no room for is an error, and leaves nothing behind: a cut capture would be another run.
func TestFullDisk(t *testing.T) {
	if room, err := strconv.ParseUint(os.Getenv("CAPTURE2TEST_ROOM"), 10, 64); err == nil {
		writeInto(t, os.Getenv("CAPTURE2TEST_FILE"), os.Getenv("CAPTURE2TEST_DIR"), room)
		return
	}
	capture := []byte("bunchnet capture 1\n\x06\x7f\x00\x00\x01\x61\x1e\x10\x00")
	file := filepath.Join(t.TempDir(), "run.capture")
	require.NoError(t, os.WriteFile(file, capture, 0o600))
	for _, room := range []int{0, 1, len(capture) - 1, len(capture)} { // the last has room for the capture, not for the test
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "game.go"), []byte("package game\n"), 0o644))
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
		cmd.Env = append(os.Environ(), "CAPTURE2TEST_ROOM="+strconv.Itoa(room), "CAPTURE2TEST_FILE="+file, "CAPTURE2TEST_DIR="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "room for %d of %d bytes: %s", room, len(capture), out)
		require.Empty(t, filesIn(t, filepath.Join(dir, "testdata")), "room for %d of %d bytes", room, len(capture))
		require.Equal(t, []string{"game.go", "testdata"}, filesIn(t, dir), "room for %d of %d bytes", room, len(capture))
		_, _, err = write(file, dir, "boot", "") // when there is room again
		require.NoError(t, err)
	}
}

// writeInto makes a test in a process of which no file may be larger than room.
func writeInto(t *testing.T, file, dir string, room uint64) {
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}))
	_, _, err := write(file, dir, "boot", "")
	require.ErrorIs(t, err, syscall.EFBIG)
}

func filesIn(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
