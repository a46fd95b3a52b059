package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOutside embeds the module as a user would: a module of its own, outside the tree, with a game of two
// files, which is vetted, built and run.
func TestOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	mod := fmt.Sprintf("module example.com/lamp\n\ngo 1.26\n\nrequire github.com/bunchnet/bunchnet v0.0.0\n\nreplace github.com/bunchnet/bunchnet => %s\n", root)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	for to, from := range map[string]string{"go.sum": "../go.sum", "game.go": "testdata/outside/game.go", "main.go": "testdata/outside/main.go"} {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), b, 0o644))
	}
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %v\n%s", name, args, out)
		return string(out)
	}
	run("go", "mod", "tidy")
	run("go", "vet", ".")
	run("go", "build", "-o", "lamp", ".")
	require.Contains(t, run("./lamp"), "PASS")

	// What a game that only replicates drags in is the module's few dependencies, and none of its tests'.
	for _, pkg := range strings.Fields(run("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")) {
		require.Contains(t, []string{"example.com/lamp", "github.com/bunchnet/bunchnet", "github.com/google/btree",
			"github.com/klauspost/cpuid/v2", "github.com/klauspost/reedsolomon", "golang.org/x/crypto", "golang.org/x/net", "golang.org/x/sys"}, pkg)
	}
}
