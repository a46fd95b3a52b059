package main

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRun runs what main runs, on several networks, and draws it.
func TestRun(t *testing.T) {
	for _, o := range []options{{seed: 2, rtt: 120 * time.Millisecond, loss: 5}, {seed: 3, rtt: 60 * time.Millisecond, loss: 10}} {
		o.seconds, o.png = 20, filepath.Join(t.TempDir(), "curves.png")
		var out strings.Builder
		if err := run(&out, o); err != nil {
			t.Errorf("%+v: %v\n%s", o, err, out.String())
			continue
		}
		f, err := os.Open(o.png)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(f); err != nil {
			t.Error(err)
		}
		_ = f.Close()
	}
}
