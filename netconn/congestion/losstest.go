package congestion

import (
	"math"
	"time"
)

// lossTest tells loss of congestion from the loss a path has anyway. It gathers
// packets until their loss is above the tolerance beyond chance, or there are enough
// to say that it isn't. Loss that doesn't fall when the rate does is the path's: the tolerance
// rises to it, and sinks back by itself. Congestion goes on until it is answered, while a burst of loss
// passes: of the slots of time that the packets are gathered in, the worst doesn't count.
type lossTest struct {
	base      float64 // configured tolerance, 0 to 1
	tolerance float64
	slot      fates // of the slot under way, which began at since
	since     time.Duration
	all       fates // of the slots before
	worst     fates // of the one among them with the most losses
	slots     int
	lastLoss  float64 // at the last verdict, 0 none
	lastRate  float64 // then, bytes a second
}

// fates counts packets.
type fates struct{ acked, lost int }

const (
	lossSample   = 20  // packets of one verdict at least
	lossWindow   = 400 // and at most
	lossSlot     = 100 * time.Millisecond
	maxTolerance = 0.4
)

// cause is what a lossTest makes of the loss.
type cause uint8

const (
	tolerable cause = iota
	congestive
	ofThePath // the last cut was in vain
)

// verdict is on the packets so far, sent at about a rate. If there is no queue
// and the rate is lower than at the last verdict, loss that is still there is the path's. An application that
// uses less than the rate doesn't congest its path, unless hardly anything arrives.
func (l *lossTest) verdict(now time.Duration, rate float64, queue, limited bool) cause {
	if now-l.since < lossSlot {
		return tolerable
	}
	l.close(now)
	acked, lost := l.all.acked-l.worst.acked, l.all.lost-l.worst.lost
	n := float64(acked + lost)
	if n < lossSample {
		return tolerable
	}
	tolerance := l.tolerance
	if limited {
		tolerance = maxTolerance
	}
	expected := tolerance * n
	if float64(lost) <= expected+2*math.Sqrt(expected*(1-tolerance))+2 {
		if n >= lossWindow {
			l.restart(now)
			l.lastLoss, l.lastRate = 0, 0
			l.tolerance += (l.base - l.tolerance) / 128
		}
		return tolerable
	}
	loss := float64(lost) / n
	l.restart(now)
	if !queue && rate < 0.9*l.lastRate && loss > l.lastLoss/2 && loss <= maxTolerance {
		l.tolerance = min(max(l.tolerance, 1.5*loss), maxTolerance)
		return ofThePath
	}
	l.lastLoss, l.lastRate = loss, rate
	return congestive
}

// close ends the slot under way.
func (l *lossTest) close(now time.Duration) {
	l.all.acked += l.slot.acked
	l.all.lost += l.slot.lost
	if l.slots == 0 || l.slot.lost > l.worst.lost {
		l.worst = l.slot
	}
	l.slots++
	l.slot, l.since = fates{}, now
}

// restart forgets the packets so far, those of an older rate.
func (l *lossTest) restart(now time.Duration) {
	l.slot, l.all, l.worst, l.slots, l.since = fates{}, fates{}, fates{}, 0, now
}
