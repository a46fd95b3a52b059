package congestion

import "math"

// lossTest tells loss of congestion from the loss a path has anyway. It gathers
// packets until their loss is above the tolerance beyond chance, or there are enough
// to say that it isn't. Loss that doesn't fall when the rate does is the path's: the tolerance
// rises to it, and sinks back by itself.
type lossTest struct {
	base      float64 // configured tolerance, 0 to 1
	tolerance float64
	acked     int
	lost      int
	lastCut   float64 // loss at the last verdict, 0 none
}

const (
	lossSample   = 20  // packets of one verdict at least
	lossWindow   = 400 // and at most
	maxTolerance = 0.4
)

// congested gives the verdict on the packets so far. below says that the rate is below the
// capacity last seen and that there is no queue: loss that is still there is the path's.
func (l *lossTest) congested(below bool) bool {
	n := float64(l.acked + l.lost)
	if n < lossSample {
		return false
	}
	expected := l.tolerance * n
	if float64(l.lost) <= expected+2*math.Sqrt(expected*(1-l.tolerance))+2 {
		if n >= lossWindow {
			l.restart()
			l.lastCut = 0
			l.tolerance += (l.base - l.tolerance) / 128
		}
		return false
	}
	loss := float64(l.lost) / n
	if below && l.lastCut > 0 && loss > l.lastCut/2 {
		l.tolerance = min(max(l.tolerance, 1.5*loss), maxTolerance)
		l.restart()
		return false
	}
	l.lastCut = loss
	l.restart()
	return true
}

// restart forgets the packets so far, those of an older rate.
func (l *lossTest) restart() { l.acked, l.lost = 0, 0 }
