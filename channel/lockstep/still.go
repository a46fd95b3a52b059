package lockstep

import (
	"math"
	"time"
)

// still finds out when this machine stood still. What came meanwhile waited for it, and says nothing of the paths.
type still struct {
	ticked, gap time.Duration // the last Tick, and how long after the one before
	woke        time.Duration // when it went on last
	began, was  bool          // it was ticked; it stood still
}

const (
	// stillTurns is how many turns a time without Ticks is, at least, in which a machine stood still, and stillGaps how many times it is as long as the
	// one before, since some tick so seldom.
	stillTurns, stillGaps = 4, 4
	// stillAgain is how long one that stood still is taken at its pace then: where it does that again and again, the game has to get on with it.
	stillAgain = 5 * time.Second
)

// longAgo is before all that any clock says.
const longAgo = time.Duration(math.MinInt64 / 2)

// look is called for each packet.
func (s *still) look(now, turn time.Duration) {
	if gap := now - s.ticked; s.began && gap > stillTurns*turn && gap > stillGaps*s.gap && (!s.was || now-s.woke > stillAgain) {
		s.was, s.woke = true, now
	}
}

// tick is called for each Tick.
func (s *still) tick(now, turn time.Duration) {
	s.look(now, turn)
	s.began, s.gap, s.ticked = true, now-s.ticked, now
}

// slept reports whether this machine has stood still since.
func (s *still) slept(since time.Duration) bool { return s.was && since < s.woke }

// woken reports whether it has just gone on.
func (s *still) woken(now time.Duration) bool { return s.was && now == s.woke }
