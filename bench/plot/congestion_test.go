package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const curves = `link,controller,seconds,rate1,rate2,queue_ms,capacity
two,adaptive,0.0,100000.0,,1.0,1000000.0
two,adaptive,0.5,900000.0,50000.0,12.0,1000000.0
two,netspeed,0.0,100000.0,,0.0,1000000.0
two,netspeed,0.5,200000.0,,0.0,1000000.0
`

// TestCongestion draws a few curves.
func TestCongestion(t *testing.T) {
	dir := t.TempDir()
	in, svg, png := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.svg"), filepath.Join(dir, "out.png")
	if err := os.WriteFile(in, []byte(curves), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(in, svg, png); err != nil {
		t.Fatal(err)
	}
	for name, begins := range map[string]string{svg: "<?xml", png: "\x89PNG"} {
		b, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(b, []byte(begins)) {
			t.Fatalf("%s: %v, %d bytes", name, err, len(b))
		}
	}
}

// TestRefuses refuses what is no table.
func TestRefuses(t *testing.T) {
	for _, text := range []string{"", "link\n", congestionHead + "\n", congestionHead + "\n1,2,x,4,5,6,7\n", congestionHead + "\n1,2\n", "a,b\n1,2\n"} {
		if _, err := read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	if run("", "", "") == nil {
		t.Error("nothing to write was fine")
	}
}
