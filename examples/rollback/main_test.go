package main

import (
	"strings"
	"testing"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
)

// TestRun runs what main runs, on several networks.
func TestRun(t *testing.T) {
	for _, o := range []options{{seed: 1, loss: 2}, {seed: 2, loss: 10}, {seed: 3}} {
		o.seconds = 20
		var out strings.Builder
		if err := run(&out, o); err != nil {
			t.Errorf("%+v: %v\n%s", o, err, out.String())
		}
	}
}

// TestRingIsDeterministic: the ring saves all of its state.
func TestRingIsDeterministic(t *testing.T) {
	err := rollback.SyncTest(rollback.Config{Players: 2, InputSize: 1}, &rollGame{ring: newRing()}, 2000, func(p int, f int64, dst []byte) {
		dst[0] = byte(f/7*int64(p+3)) & 31
	})
	if err != nil {
		t.Error(err)
	}
}
