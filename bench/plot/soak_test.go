package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSoak draws a few samples, and refuses what are none.
func TestSoak(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.svg")
	write := func(text string) {
		if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const head = "seconds,clients,connections,heap,goroutines,files\n"
	write(head + "0.0,1,2,3000000,4,5\n1.0,2,3,4000000,5,6\n2.0,2,3,4000000,5,6\n")
	if err := run(in, out, ""); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(b), "heap, MB") {
		t.Fatalf("%v: %.80s", err, b)
	}
	for _, bad := range []string{"", head, head + "1,2\n", head + "1,2,3,4,5,x\n"} {
		write(bad)
		if run(in, out, "") == nil {
			t.Errorf("%q was drawn", bad)
		}
	}
}
