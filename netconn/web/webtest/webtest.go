// Package webtest helps programs and tests that play in a real browser: it builds the client and finds a Chromium.
package webtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoChromium is returned by FindChromium when it finds no browser.
var ErrNoChromium = errors.New("no Chromium is installed; apt-get install chromium")

// FindChromium returns the path of chromium, chromium-browser or google-chrome, whichever is first found in PATH; otherwise ErrNoChromium.
func FindChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", ErrNoChromium
}

// Build compiles a main package for browsers (GOOS=js GOARCH=wasm) with the go command, in the module of the current folder. support is the folder of
// that Go's wasm_exec.js, which a page must load first. An error includes the compiler's output.
func Build(ctx context.Context, pkg string) (wasm []byte, support string, err error) {
	dir, err := os.MkdirTemp("", "webtest")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, "", fmt.Errorf("the go command is needed, which builds the client for browsers: %w", err)
	}
	out := filepath.Join(dir, "client.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("go build %s, for browsers: %w\n%s", pkg, err, said)
	}
	wasm, err = os.ReadFile(out)
	return wasm, filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm"), err
}
