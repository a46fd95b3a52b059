package main

import (
	"fmt"
	"math"
	"time"
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
func (g *game) see(b *end) {
	var drawn Runner
	if b.drawn.At(b.runner, &drawn) && b.in.Counters.Draws > 1 {
		g.jump = max(g.jump, math.Abs(drawn.X-g.bob))
	}
	g.bob = drawn.X
}

func (g *game) verdict(s, a, b *end) error {
	var rtt time.Duration
	for conn := range a.net.Conns {
		rtt = conn.RTT()
	}
	draws, late, c := b.in.Counters.Draws, b.in.Counters.Late, a.runners.Counters().Client
	fmt.Printf("Ann:  %d keys, %d felt in the same frame; without prediction each would have taken %v\n", g.pressed, g.felt, rtt.Round(time.Millisecond))
	fmt.Printf("      %d moves, %d acks, %d corrections\n", c.Moves, c.Acks, c.Corrections)
	fmt.Printf("Bob:  %d of %d frames waited for a place; at most %.2f m from frame to frame\n", late, draws, g.jump)
	fmt.Printf("end:  server %.3f, Ann %.3f, Bob %.3f\n", s.runner.X, g.ann, g.bob)
	switch {
	case g.felt < g.pressed || g.pressed < 4:
		return fmt.Errorf("%d of %d keys were felt at once", g.felt, g.pressed)
	case c.Corrections < 2: // the first is her first state
		return fmt.Errorf("the push wasn't felt")
	case draws == 0 || late*10 > draws:
		return fmt.Errorf("in %d of %d frames Bob waited for a place", late, draws)
	}
	fmt.Println("PASS: felt at once, seen evenly, and all agree")
	return nil
}
