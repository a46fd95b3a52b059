package main

import (
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
