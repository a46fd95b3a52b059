package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompare draws each table of bench/compare, and refuses what can't be on a logarithmic axis.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.svg")
	for _, c := range []struct{ head, rows, bad, texts string }{
		{latencyHead, "60,kcp,0,100\n60,kcp,5,300\n600,udp,0,90\n", "60,kcp,x,1", "p99 of an echo, 60/s, 50 ms one way|p99 of an echo, 600/s, 50 ms one way|kcp|udp"},
		{frontierHead, "a bad network,quic @120,1.5,90\na bad network,quic,2.5,80\n", "a,quic,1,0", "a bad network|quic @120|p99, ms"},
		{dotsHead, "of 32 B,tcp,0.5\nof 32 B,udp,0.25\nof 64 B,tcp,1\n", "a,tcp,-1", "of 32 B|of 64 B|tcp|udp"},
		{growthHead, "changes,so many changing,0,1\nchanges,so many changing,10,2\nchanges,so many changing,1000,9\nactors,nothing changing,10,1\n",
			"actors,nothing changing,1.5,1", "with more changes|with more actors|so many changing|1,000|linear growth"},
	} {
		if err := os.WriteFile(in, []byte(c.head+"\n"+c.rows), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(in, out, filepath.Join(dir, "out.png")); err != nil {
			t.Error(err)
			continue
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(c.texts, "|") {
			if !strings.Contains(string(b), text) {
				t.Errorf("%s: %q isn't drawn", c.head, text)
			}
		}
		for _, bad := range []string{c.bad, strings.ReplaceAll(c.bad, "1", "NaN")} {
			if err := os.WriteFile(in, []byte(c.head+"\n"+bad+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if run(in, out, "") == nil {
				t.Errorf("%s: %q was drawn", c.head, bad)
			}
		}
	}
	if err := os.WriteFile(in, []byte(growthHead+"\nactors,nothing changing,0,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if run(in, out, "") == nil {
		t.Error("growth of nothing was drawn")
	}
}
