package main

import "testing"

func TestSeeds(t *testing.T) {
	for seed := range uint64(30) {
		if r := play(draw(seed)); !r.OK() {
			t.Errorf("%v", &r)
		}
	}
}
