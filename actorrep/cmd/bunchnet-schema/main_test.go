package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

const game = "github.com/bunchnet/bunchnet/actorrep/cmd/bunchnet-schema/testdata/game"

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "%s; if that is right, go test -update", file)
}

func command(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = run(args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestDump(t *testing.T) {
	for name, function := range map[string]string{"v1.json": "Register", "v2.json": "Register2"} {
		code, out, errs := command("dump", game+"."+function)
		require.Zero(t, code, errs)
		golden(t, name, []byte(out))
	}
	file := filepath.Join(t.TempDir(), "v1.json")
	code, _, errs := command("dump", "-o", file, game+".Register")
	require.Zero(t, code, errs)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	golden(t, "v1.json", data)
}

func TestDumpErrors(t *testing.T) {
	for function, text := range map[string]string{
		game + ".Fails":    "no classes today",
		game + ".Nothing":  "Nothing",
		game + ".register": "exported function",
		game:               "exported function",
		game + ".Door":     "Door",
	} {
		code, _, errs := command("dump", function)
		require.Equal(t, 2, code, function)
		require.Contains(t, errs, text, function)
	}
}

func TestDiff(t *testing.T) {
	v1, v2 := filepath.Join("testdata", "v1.json"), filepath.Join("testdata", "v2.json")
	code, out, errs := command("diff", v1, v2)
	require.Equal(t, 1, code, errs)
	golden(t, "diff.txt", []byte(out))
	code, out, _ = command("diff", v1, v1)
	require.Zero(t, code)
	require.Equal(t, "0 fine, 0 risky, 0 breaking: the two builds may talk to each other\n", out)

	small := filepath.Join(t.TempDir(), "small.json")
	require.NoError(t, os.WriteFile(small, []byte(`{"classes": [{"name": "Soldier", "fields": [{"name": "Name", "type": "string", "kind": "string", "max": 16}]}]}`), 0o600))
	code, out, _ = command("diff", v1, small)
	require.Zero(t, code)
	require.Contains(t, out, "1 risky")
	code, _, _ = command("diff", "-strict", v1, small)
	require.Equal(t, 1, code)
}

func TestMisuse(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte("{"), 0o600))
	empty := filepath.Join(t.TempDir(), "empty.json")
	require.NoError(t, os.WriteFile(empty, []byte("{}"), 0o600))
	for _, args := range [][]string{{}, {"help"}, {"dump"}, {"diff", "a"}, {"diff", "-x", "a", "b"}} {
		code, _, errs := command(args...)
		require.Equal(t, 2, code)
		require.Contains(t, errs, "usage:")
	}
	v1 := filepath.Join("testdata", "v1.json")
	for _, args := range [][]string{{"diff", v1, "missing.json"}, {"diff", bad, v1}, {"diff", v1, empty}} {
		code, _, errs := command(args...)
		require.Equal(t, 2, code)
		require.Contains(t, errs, ".json")
	}
}
