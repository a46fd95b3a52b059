package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestPlay runs what main runs, with and without the wrong unit.
func TestPlay(t *testing.T) {
	for _, o := range []options{
		{loss: 10}, {loss: 10, desync: true}, {loss: 10, link: true}, {loss: 5, link: true, desync: true}, {loss: 30, desync: true, maps: true},
	} {
		o.seed, o.turns, o.lag = 3, 400, 40*time.Millisecond
		var out strings.Builder
		if err := play(&out, o); err != nil {
			t.Errorf("%+v: %v\n%s", o, err, out.String())
		}
	}
}

// TestTooBad: a network that can't carry the game is a failure, not a hang.
func TestTooBad(t *testing.T) {
	if play(io.Discard, options{seed: 1, turns: 200, loss: 100}) == nil {
		t.Error("played over a dead network")
	}
}

// TestStrangers: the game goes on for the honest, over either transport.
func TestStrangers(t *testing.T) {
	for _, o := range []options{{loss: 10}, {loss: 0}, {loss: 10, link: true}, {loss: 20}} {
		for o.seed = 1; o.seed < 4; o.seed++ {
			o.turns, o.lag = 400, 40*time.Millisecond
			var out strings.Builder
			if err := strangers(&out, o); err != nil {
				t.Errorf("%+v: %v\n%s", o, err, out.String())
			}
		}
	}
}
