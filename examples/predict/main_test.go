package main

import (
	"strings"
	"testing"
	"time"
)

// TestPlay runs what main runs, over several networks.
func TestPlay(t *testing.T) {
	const ms = time.Millisecond
	for _, o := range []options{
		{rtt: 200 * ms, loss: 5, jitter: 10 * ms}, {rtt: 60 * ms, loss: 1, jitter: 5 * ms}, {rtt: 300 * ms, loss: 15, jitter: 40 * ms},
		{rtt: 0}, {rtt: 200 * ms, loss: 5, jitter: 10 * ms, cheat: true},
	} {
		for o.seed = 1; o.seed <= 5; o.seed++ {
			var out strings.Builder
			if err := play(&out, o); err != nil {
				t.Errorf("%+v: %v\n%s", o, err, out.String())
			}
		}
	}
}

// TestNoServer: when nothing arrives the verdict says so.
func TestNoServer(t *testing.T) {
	var out strings.Builder
	if play(&out, options{seed: 1, loss: 100}) == nil {
		t.Errorf("passed over a dead network\n%s", out.String())
	}
}
