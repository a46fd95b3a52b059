package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRun runs what main runs, over several networks.
func TestRun(t *testing.T) {
	for _, o := range []options{{seed: 1, lag: 50 * time.Millisecond, loss: 5}, {seed: 2, lag: 100 * time.Millisecond, loss: 10}, {seed: 3}} {
		o.seconds = 30
		if testing.Short() && o.seed > 1 {
			break
		}
		var out strings.Builder
		if err := run(&out, o); err != nil {
			t.Errorf("%+v: %v\n%s", o, err, out.String())
		}
	}
}

// TestPlay: the same game over real sockets, the host in memory, ends with everybody having the same; and pictures are taken of it.
func TestPlay(t *testing.T) {
	var out strings.Builder
	dir := t.TempDir()
	if err := play(t.Context(), &out, options{host: "127.0.0.1:0", name: "Ann", bots: 2, bot: true, seconds: 2, pictures: dir}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*.png")); err != nil || len(files) < 2 {
		t.Errorf("%d pictures, %v", len(files), err)
	}
}

// TestWatch: what was recorded is watched, to the end.
func TestWatch(t *testing.T) {
	var out strings.Builder
	tape := filepath.Join(t.TempDir(), "match")
	if err := play(t.Context(), &out, options{host: "127.0.0.1:0", name: "Ann", bot: true, seconds: 1, record: tape}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	out.Reset()
	if err := play(t.Context(), &out, options{watch: tape}); err != nil || !strings.Contains(out.String(), "Ann") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestSameSeed: a match is the same again.
func TestSameSeed(t *testing.T) {
	var out [2]strings.Builder
	for i := range out {
		if err := run(&out[i], options{seed: 4, seconds: 20, lag: 30 * time.Millisecond, loss: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if out[0].String() != out[1].String() {
		t.Errorf("%s\n%s", out[0].String(), out[1].String())
	}
}

// TestMigrate: the host of a listen server dies, and the game goes on with another, in virtual time and over real sockets.
func TestMigrate(t *testing.T) {
	for _, o := range []options{{seed: 1, lag: 50 * time.Millisecond, loss: 5}, {seed: 2, lag: 100 * time.Millisecond, loss: 10}, {seed: 3}, {seed: 4, host: "127.0.0.1:0"}} {
		o.seconds = 20
		if testing.Short() && o.seed > 1 || o.host != "" && os.Getenv("CI") == "" {
			continue
		}
		var out strings.Builder
		if err := runMigrate(t.Context(), &out, o); err != nil {
			t.Errorf("%+v: %v\n%s", o, err, out.String())
		}
	}
}
