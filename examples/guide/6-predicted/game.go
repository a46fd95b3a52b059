package main

import (
	"fmt"
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/interpolation"
)

// game is what happens: keys pressed by Ann, and what is seen of them.
type game struct {
	frame         int // of Ann's
	pressed, felt int // keys, and those that moved her in the same frame
	before        float64
	last          Keys
	fresh         bool // last was pressed anew

	ann, bob float64 // where they see Ann
	jump     float64 // Bob's longest way between two frames
	drawn    map[interpolation.State]int
}

// keys is what Ann presses in a step, counted from the one in which she begins.
func (g *game) keys(r *Runner) (k Keys) {
	if g.fresh && r.X != g.before { // after the step in which it was pressed
		g.felt++
	}
	if g.frame < running {
		k.Dir = []int8{1, 1, 0, -1, 1}[g.frame*2/hz%5]
	}
	if g.fresh = k != g.last && k.Dir != 0; g.fresh {
		g.pressed++
	}
	g.before, g.last = r.X, k
	g.frame++
	return k
}

// see draws Ann for Bob a little in the past, between two places that he knows.
func (g *game) see(r *Runner, at time.Duration) {
	if t, ok := r.timeline.Now(at); ok {
		x, state := r.places.At(t)
		if g.drawn[interpolation.Interpolated] > 0 {
			g.jump = max(g.jump, math.Abs(x-g.bob))
		}
		g.bob = x
		g.drawn[state]++
	}
}

func (g *game) verdict(s, a *end) error {
	all := 0
	for _, n := range g.drawn {
		all += n
	}
	var rtt time.Duration
	for conn := range a.net.Conns {
		rtt = conn.RTT()
	}
	between, c := g.drawn[interpolation.Interpolated], a.runners.Counters().Client
	fmt.Printf("Ann:  %d keys, %d felt in the same frame; without prediction each would have taken %v\n", g.pressed, g.felt, rtt.Round(time.Millisecond))
	fmt.Printf("      %d moves, %d acks, %d corrections\n", c.Moves, c.Acks, c.Corrections)
	fmt.Printf("Bob:  %d of %d frames between two known places; at most %.2f m from frame to frame\n", between, all, g.jump)
	fmt.Printf("end:  server %.3f, Ann %.3f, Bob %.3f\n", s.runner.X, g.ann, g.bob)
	switch {
	case g.felt < g.pressed || g.pressed < 4:
		return fmt.Errorf("%d of %d keys were felt at once", g.felt, g.pressed)
	case c.Corrections < 2: // the first is her first state
		return fmt.Errorf("the push wasn't felt")
	case between*2 < all:
		return fmt.Errorf("only in %d of %d frames had Bob two places", between, all)
	}
	fmt.Println("PASS: felt at once, seen evenly, and all agree")
	return nil
}
