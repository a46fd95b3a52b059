package analysis

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var wanted = regexp.MustCompile("// want (.*)")

// wantedLines is a line "file:line" for each message that the examples in a folder want, sorted.
func wantedLines(t *testing.T, dir string) (lines []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			if m := wanted.FindStringSubmatch(line); m != nil {
				for range strings.Count(m[1], "`") / 2 {
					lines = append(lines, fmt.Sprintf("%s:%d", filepath.Base(name), i+1))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// userModule is a module of a user's with the examples in it, on the real actorrep: what the examples are written against
// elsewhere in these tests is a stub.
func userModule(t *testing.T) string {
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	text := strings.NewReplacer("module github.com/bunchnet/bunchnet/actorrep/analysis", "module game", "=> ../..", "=> "+root).Replace(string(mod))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o666))
	sum, err := os.ReadFile("go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o666))
	files, err := filepath.Glob("testdata/src/*/*.go")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		to := filepath.Join(dir, filepath.Base(filepath.Dir(name)), filepath.Base(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o777))
		require.NoError(t, os.WriteFile(to, []byte(strings.ReplaceAll(string(text), `"rpcs"`, `"game/rpcs"`)), 0o666))
	}
	return dir
}

// TestVetTool builds bunchvet and runs it as go vet's tool over the examples, as a user does, one analyser at a time.
func TestVetTool(t *testing.T) {
	if testing.Short() {
		t.Skip("builds bunchvet and everything the examples import")
	}
	dir := userModule(t)
	tool := filepath.Join(dir, "bunchvet")
	out, err := exec.Command("go", "build", "-o", tool, "./cmd/bunchvet").CombinedOutput()
	require.NoError(t, err, "%s", out)
	message := regexp.MustCompile(`^(?:vet: )?(?:.*/)?([a-z]+\.go:[0-9]+):[0-9]+: (?:error|warning|advice): `)
	for _, a := range All() {
		cmd := exec.Command("go", "vet", "-mod=mod", "-vettool="+tool, "-"+a.Name, "./"+a.Name)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%s: it found nothing:\n%s", a.Name, out)
		var got []string
		for _, line := range strings.Split(string(out), "\n") {
			if m := message.FindStringSubmatch(line); m != nil {
				got = append(got, m[1])
			}
		}
		slices.Sort(got)
		require.Equal(t, wantedLines(t, filepath.Join("testdata/src", a.Name)), got, "%s:\n%s", a.Name, out)
	}
}
