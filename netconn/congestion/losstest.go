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
	lastLoss  float64 // at the last verdict, 0 none
	lastRate  float64 // then, bytes a second
}

const (
	lossSample   = 20  // packets of one verdict at least
	lossWindow   = 400 // and at most
	maxTolerance = 0.4
)

// congested gives the verdict on the packets so far, sent at about a rate. If there is no queue
// and the rate is lower than at the last verdict, loss that is still there is the path's.
func (l *lossTest) congested(rate float64, queue bool) bool {
	n := float64(l.acked + l.lost)
	if n < lossSample {
		return false
	}
	expected := l.tolerance * n
	if float64(l.lost) <= expected+2*math.Sqrt(expected*(1-l.tolerance))+2 {
		if n >= lossWindow {
			l.restart()
			l.lastLoss, l.lastRate = 0, 0
			l.tolerance += (l.base - l.tolerance) / 128
		}
		return false
	}
	loss := float64(l.lost) / n
	if !queue && rate < 0.9*l.lastRate && loss > l.lastLoss/2 {
		l.tolerance = min(max(l.tolerance, 1.5*loss), maxTolerance)
		l.restart()
		return false
	}
	l.lastLoss, l.lastRate = loss, rate
	l.restart()
	return true
}

// restart forgets the packets so far, those of an older rate.
func (l *lossTest) restart() { l.acked, l.lost = 0, 0 }
