package lockstep

import (
	"cmp"
	"time"
)

// Path is how a player's packets travel.
type Path struct {
	Player int
	RTT    time.Duration // smoothed round trip between host and player
	Jitter time.Duration // smoothed deviation from it
}

// DelayPolicy decides about the input delay. It is asked by the Host only, which makes its
// answer part of a turn, so peers agree about the turn from which it holds.
type DelayPolicy interface {
	// Delay returns the input delay in turns that suits the paths of the players in the game; the
	// Host keeps it within 1 and MaxDelay. paths is valid until the call returns.
	Delay(current int, interval time.Duration, paths []Path) int
}

// FixedDelay keeps a delay of so many turns.
type FixedDelay int

// Delay returns f.
func (f FixedDelay) Delay(int, time.Duration, []Path) int { return int(f) }

// AdaptiveDelay gives commands the time to get from the player with the worst path to the
// host and on to that same player, and a turn for both ends' ticks. It grows
// at once, and shrinks by one turn when the need was smaller for a while.
type AdaptiveDelay struct {
	// Margin is added in deviations of the worst round trip.
	Margin int
	// Patience is how many decisions in a row must find a smaller delay enough.
	Patience int
	// Lead is by how many turns one player may raise the delay above what all others need; default 4,
	// negative: by any number. A round trip is what the player says: it can look longer, never shorter, than it is.
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
