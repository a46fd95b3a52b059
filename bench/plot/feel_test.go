package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFeel draws two panels, one of two curves, and refuses what are no points.
func TestFeel(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.svg")
	write := func(text string) {
		if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(feelHead + "\nfelt,trip,lockstep,10,20\nfelt,trip,lockstep,20,40\nfelt,trip,rollback,10,30\nfelt,trip,rollback,20,30\nwait,time,one,0,1\nwait,time,one,1,2\n")
	if err := run(in, out, ""); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"felt", "trip", "lockstep", "rollback", "wait", "time"} {
		if !strings.Contains(string(b), text) {
			t.Errorf("%q isn't drawn", text)
		}
	}
	if strings.Contains(string(b), ">one<") {
		t.Error("the only curve of a panel has a legend")
	}
	for _, bad := range []string{feelHead + "\na,b,c,x,1\n", feelHead + "\na,b,c,1,\n"} {
		write(bad)
		if run(in, out, "") == nil {
			t.Errorf("%q was drawn", bad)
		}
	}
}
