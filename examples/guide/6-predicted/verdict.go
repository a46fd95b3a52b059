package main

import (
	"fmt"
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/interpolation"
)

// agree reports whether the server, Ann and Bob have Ann in the same place.
func agree(s *server, a *ann, b *bob) bool {
	return math.Abs(s.runner.X-*a.me.mine.State()) < 1e-6 && math.Abs(s.runner.X-b.drawn) < 0.006
}

func verdict(s *server, a *ann, b *bob) error {
	if a.me == nil || s.runner == nil || len(a.server) == 0 {
		return fmt.Errorf("nobody came to run")
	}
	truth, predicted := s.runner.X, *a.me.mine.State()
	drawn, all := b.states[interpolation.Interpolated], 0
	for _, n := range b.states {
		all += n
	}
	c := a.me.mine.Counters
	fmt.Printf("Ann:  %d keys, %d felt in the same frame; without prediction the first would have taken %v\n", a.changed, a.felt, a.server[0].Round(time.Millisecond))
	fmt.Printf("      %d moves, %d acks, %d corrections\n", c.Moves, c.Acks, c.Corrections)
	fmt.Printf("Bob:  %d of %d frames between two known places; at most %.2f m from frame to frame\n", drawn, all, b.jump)
	fmt.Printf("end:  server %.3f, Ann %.3f, Bob %.3f\n", truth, predicted, b.drawn)
	switch {
	case a.felt < a.changed || a.changed < 4:
		return fmt.Errorf("%d of %d keys were felt at once", a.felt, a.changed)
	case !agree(s, a, b):
		return fmt.Errorf("not everybody has Ann in the same place")
	case c.Corrections == 0:
		return fmt.Errorf("the push wasn't felt")
	case drawn*2 < all:
		return fmt.Errorf("only in %d of %d frames had Bob two places", drawn, all)
	}
	fmt.Println("PASS: felt at once, seen evenly, and all agree")
	return nil
}
