package main

import (
	"strings"
	"testing"

	"github.com/bunchnet/bunchnet/examples/rollback/ring"
)

// TestRun runs what main runs, on several networks.
func TestRun(t *testing.T) {
	for _, o := range []ring.Options{{Seed: 1, Loss: 2}, {Seed: 2, Loss: 10}, {Seed: 3}} {
		o.Seconds = 20
		var out strings.Builder
		if err := run(&out, o); err != nil {
			t.Errorf("%+v: %v\n%s", o, err, out.String())
		}
	}
}
