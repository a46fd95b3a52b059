package lockstep

import (
	"cmp"
	"time"
)

// Path is the measured round trip between the host and a player.
type Path struct {
	Player int
	RTT    time.Duration // smoothed
	Jitter time.Duration // smoothed deviation from RTT
}

// DelayPolicy decides about the input delay. Only the Host asks it, and puts the answer into a turn, so all peers change
// the delay in the same turn.
type DelayPolicy interface {
	// Delay returns the input delay, in turns, for the paths of the players in the game. The Host limits it to 1 to
	// MaxDelay. current is the present delay, interval Config.TurnInterval. paths is valid until the call returns.
	Delay(current int, interval time.Duration, paths []Path) int
}

// FixedDelay is a constant delay, in turns.
type FixedDelay int

// Delay returns f.
func (f FixedDelay) Delay(int, time.Duration, []Path) int { return int(f) }

// AdaptiveDelay sets the delay to the longest round trip of a player, with a margin for jitter, and one turn for both
// ends' ticks. The delay grows at once. It shrinks by one turn after Patience decisions that needed less.
type AdaptiveDelay struct {
	// Margin is how many times a path's Jitter is added to its RTT.
	Margin int
	// Patience is how many decisions in a row must need a smaller delay before it shrinks.
	Patience int
	// Lead is how many turns one player may raise the delay above what all others need; default 4, negative: no
	// bound. A dishonest player can make its round trip look longer than it is, or shorter, by what it says of how long it held a packet: then the delay is too
	// short for its own commands, and it is dropped as others are whose commands come too late.
	Lead int

	smaller int
}

// NewAdaptiveDelay returns the default policy: a margin of 3, a patience of 4 and a lead of 4.
func NewAdaptiveDelay() *AdaptiveDelay { return &AdaptiveDelay{Margin: 3, Patience: 4} }

// Delay implements DelayPolicy.
func (a *AdaptiveDelay) Delay(current int, interval time.Duration, paths []Path) int {
	var worst, second time.Duration
	for _, p := range paths {
		d := p.RTT + time.Duration(a.Margin)*p.Jitter
		second = max(second, min(d, worst))
		worst = max(worst, d)
	}
	turns := func(d time.Duration) int { return 1 + int((d+interval-1)/interval) }
	need := turns(worst)
	if lead := cmp.Or(a.Lead, 4); lead >= 0 && len(paths) > 1 {
		need = min(need, turns(second)+lead)
	}
	if need >= current {
		a.smaller = 0
		return need
	}
	if a.smaller++; a.smaller < a.Patience {
		return current
	}
	a.smaller = 0
	return current - 1
}
