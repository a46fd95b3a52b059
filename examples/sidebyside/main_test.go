package main

import (
	"image/gif"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPlay runs what main runs, with the film. Without prediction the car mustn't be as good, whatever the network.
func TestPlay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "game.gif")
	for seed := range uint64(3) {
		o := options{seed: seed, rtt: 150 * time.Millisecond, loss: 5, seconds: 12}
		if seed == 1 {
			o.gif = file
		}
		var out strings.Builder
		if err := run(&out, o); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, out.String())
		}
	}
	b, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	g, err := gif.DecodeAll(b)
	if err != nil || len(g.Image) < 200 {
		t.Fatalf("%d frames, %v", len(g.Image), err)
	}
	if s, _ := b.Stat(); s.Size() > 1<<20 {
		t.Errorf("%d bytes are too many for a page", s.Size())
	}
}
