package main

import (
	"bytes"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
)

// TestGame goes the whole way, in a module outside the tree: a game is recorded over a lossy link, the file becomes a test, the test
// passes; then somebody changes the rules, and it fails.
func TestGame(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	mod := fmt.Sprintf("module example.com/counter\n\ngo 1.26\n\nrequire github.com/bunchnet/bunchnet v0.0.0\n\nreplace github.com/bunchnet/bunchnet => %s\n", root)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
	game, err := os.ReadFile("testdata/game/main.go")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), game, 0o644))
	sum, err := os.ReadFile("../../go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
	run := func(args ...string) (string, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("mod", "tidy")
	require.NoError(t, err, out)
	file := filepath.Join(t.TempDir(), "lost-packets.capture")
	out, err = run("run", ".", file)
	require.NoError(t, err, out)

	// A film has the capture within it, as it was amid a tick.
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	cut := whole[:len(whole)/2]
	page := filepath.Join(t.TempDir(), "a film.html")
	require.NoError(t, os.WriteFile(page, filmOf(t, cut), 0o600))
	_, summary, err := write(page, dir, "boot", "")
	require.NoError(t, err)
	require.Contains(t, summary, "cut off")
	kept, err := os.ReadFile(filepath.Join(dir, "testdata", "afilm_run.capture"))
	require.NoError(t, err)
	require.Equal(t, cut, kept)
	out, err = run("test", "-v", "-run", "TestCaptureAFilm", ".")
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS: TestCaptureAFilm")
	require.NoError(t, os.WriteFile(page, filmOf(t, nil), 0o600))
	_, _, err = write(page, dir, "boot", "another")
	require.ErrorIs(t, err, errNoCapture)

	var path string
	path, summary, err = write(file, dir, "boot", "")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "lostpackets_capture_test.go"), path)
	require.Contains(t, summary, " ticks in 5.")
	out, err = run("test", "-v", "-run", "TestCaptureLostPackets", ".")
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS: TestCaptureLostPackets")

	changed := string(game) + "\nfunc init() { worth = 2 }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(changed), 0o644))
	out, err = run("test", ".")
	require.Error(t, err, out)
	require.Contains(t, out, "the replay went another way than the recorded run in tick")

	// A package that has the names of the test's imports, and whose boot is called as one of its variables would be.
	dir2 := filepath.Join(dir, "names")
	require.NoError(t, os.Mkdir(dir2, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir2, "names.go"), []byte(names), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir2, "names_windows.go"), []byte("package names\n\nvar os2 int\n"), 0o644))
	path, _, err = write(file, dir2, "err(result, t)", "")
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `os3 "os"`)
	require.NotContains(t, string(text), "in tick", "an error of a Call may be long past when the run ends")
	out, err = run("vet", "./names")
	require.NoError(t, err, out)
	require.NoError(t, os.Rename(path, filepath.Join(dir2, "by_hand_test.go")))
	_, _, err = write(file, dir2, "err(result, t)", "")
	require.ErrorContains(t, err, "has a TestCaptureLostPackets")
}

func filmOf(t *testing.T, capture []byte) []byte {
	rec, err := flight.New(actorrep.NewServer(actorrep.Config{}), nil, flight.Config{})
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, rec.Take().WriteHTML(&page, flight.View{Capture: capture}))
	return page.Bytes()
}

const names = `package names

import c "github.com/bunchnet/bunchnet/netconn/driver/capture"

type (
	capture struct{}
	testing struct{}
)

const result, t = 1, 2

var os, file = capture{}, testing{}

func err(a, b int) c.Boot { return nil }
`

// TestRefused: what can't become a test says why.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.capture")
	_, _, err := write(file, dir, "boot", "")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("nothing"), 0o644))
	_, _, err = write(file, dir, "boot", "")
	require.ErrorContains(t, err, "not a capture")
	require.NoError(t, os.WriteFile(file, []byte("bunchnet capture 1\n\x06\x7f\x00\x00\x01\x61\x1e\x10\x00"), 0o644))
	_, _, err = write(file, dir, "boot", "")
	require.ErrorContains(t, err, "-dir")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "game.go"), []byte("package game\n"), 0o644))
	_, _, err = write(file, dir, "boot(", "")
	require.ErrorContains(t, err, "-boot")
	_, summary, err := write(file, dir, "boot", "the 2nd one")
	require.NoError(t, err)
	require.Contains(t, summary, "cut off")
	require.FileExists(t, filepath.Join(dir, "the2ndone_capture_test.go"))
}

// TestCutFilm: of a film that is cut off, or damaged, that is said, and not that no capture was put into it.
func TestCutFilm(t *testing.T) {
	film := filmOf(t, bytes.Repeat([]byte("capture"), 1000))
	begin := bytes.Index(film, []byte(`class="capture">`)) + len(`class="capture">`)
	end := begin + bytes.IndexByte(film[begin:], '<')
	for _, n := range []int{20, begin - 1, begin, (begin + end) / 2, end} {
		_, err := ofFilm(film[:n])
		require.ErrorIs(t, err, errCutFilm, "%d of %d bytes", n, len(film))
	}
	for at := begin; at < end; at++ {
		bad := bytes.Clone(film)
		bad[at] ^= 1
		if data, err := ofFilm(bad); err != nil {
			require.ErrorIs(t, err, errDamaged)
		} else { // a bit that says nothing
			require.Equal(t, bytes.Repeat([]byte("capture"), 1000), data)
		}
	}
}

// TestEveryNameIsBuilt: whatever the file is called, go test finds the test on this machine, or write says why not.
func TestEveryNameIsBuilt(t *testing.T) {
	empty := []byte("bunchnet capture 1\n\x06\x7f\x00\x00\x01\x61\x1e\x10\x00")
	for _, name := range []string{"windows", "linux", "plan9", "arm64", "windows_amd64", "js_wasm", "test", "unix", "_x", ".hidden", "a.b", "the 2nd one", "ünïcödé", "con", "NUL", "com1"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "game.go"), []byte("package game\n"), 0o644))
		file := filepath.Join(t.TempDir(), name+".capture")
		require.NoError(t, os.WriteFile(file, empty, 0o600))
		path, _, err := write(file, dir, "boot", "")
		require.NoError(t, err, name)
		kept, err := os.ReadDir(filepath.Join(dir, "testdata"))
		require.NoError(t, err)
		stem, _, _ := strings.Cut(kept[0].Name(), ".")
		require.NotContains(t, []string{"con", "nul", "com1"}, stem, "a device on Windows, with whatever behind the dot")
		for _, goos := range []string{"linux", "windows", "darwin"} {
			where := build.Default
			where.GOOS = goos
			pkg, err := where.ImportDir(dir, 0)
			require.NoError(t, err, name)
			require.Equal(t, []string{filepath.Base(path)}, pkg.TestGoFiles, "%s on %s", name, goos)
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "game.go"), []byte("package game\n"), 0o644))
	file := filepath.Join(dir, "x.capture")
	require.NoError(t, os.WriteFile(file, empty, 0o600))
	_, _, err := write(file, dir, "boot", "---")
	require.ErrorContains(t, err, "-name")
	_, _, err = write(file, dir, "boot", "a-b")
	require.NoError(t, err)
	_, _, err = write(file, dir, "boot", "AB")
	require.NoError(t, err, "the same run again")
	require.NoError(t, os.WriteFile(file, append(empty, 9), 0o600))
	_, _, err = write(file, dir, "boot", "AB")
	require.ErrorContains(t, err, "another run")

	own := filepath.Join(dir, "mine_capture_test.go")
	require.NoError(t, os.WriteFile(own, []byte("package game\n"), 0o600))
	_, _, err = write(file, dir, "boot", "mine")
	require.ErrorContains(t, err, "made by hand")
	text, err := os.ReadFile(own)
	require.NoError(t, err)
	require.Equal(t, "package game\n", string(text))
}

// TestPackageName: the test is in the package that is built in the folder, whatever else lies there.
func TestPackageName(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a_gen.go": "//go:build ignore\n\npackage main\n", "game.go": "package game\n", "a_test.go": "package game_test\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	name, err := packageName(dir)
	require.NoError(t, err)
	require.Equal(t, "game", name)
}
