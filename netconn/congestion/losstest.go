package congestion

import (
	"cmp"
	"math"
	"time"
)

// lossTest tells loss of congestion from the loss a path has anyway. It gathers
// packets until their loss is above the tolerance beyond chance, or there are enough
// to say that it isn't. Loss that doesn't fall when the rate does is the path's: the tolerance
// rises to it, and sinks back by itself. Congestion goes on until it is answered, while a burst of loss
// passes: of the slots of time that the packets are gathered in, the worst doesn't count as loss that stays. Whether loss has gone is
// told from all of them.
type lossTest struct {
	base      float64 // configured tolerance, 0 to 1
	tolerance float64
	slot      fates // of the slot under way, which began at since
	since     time.Duration
	clean     bool     // the last of the slots before had no losses
	all       gathered // of the slots before
	eager     gathered // of those among them in which the application used the rate
	rate      float64  // the lowest of theirs, bytes a second
	lastLoss  float64  // at the last congestion, 0 once it is known to have been that
	lastRate  float64  // of what was sent then, bytes a second
}

// fates counts packets.
type fates struct{ acked, lost int }

func (f *fates) add(more fates) {
	f.acked += more.acked
	f.lost += more.lost
}

// loss is the share that was lost.
func (f *fates) loss() float64 { return float64(f.lost) / float64(f.acked+f.lost) }

// gathered is the fates of the packets of slots.
type gathered struct {
	fates
	worst fates // of the slot with the most losses
}

func (g *gathered) add(slot fates) {
	g.fates.add(slot)
	if slot.lost > g.worst.lost {
		g.worst = slot
	}
}

// lasting is all but the worst slot.
func (g *gathered) lasting() (acked, lost float64) {
	return float64(g.acked - g.worst.acked), float64(g.lost - g.worst.lost)
}

const (
	lossSample   = 20  // packets of one verdict at least
	lossWindow   = 400 // and at most
	lossSlot     = 100 * time.Millisecond
	maxTolerance = 0.4
	sure         = 3.0 // odds of e to that are enough
)

// cause is what a lossTest makes of the loss.
type cause uint8

const (
	tolerable cause = iota
	congestive
	ofThePath // the last cut was in vain
	answered  // it wasn't
)

// verdict is on the packets so far; rate is that of those since the last call. An application that uses less than the rate doesn't congest
// its path, unless hardly anything arrives.
func (l *lossTest) verdict(now time.Duration, rate float64, queue, limited bool) cause {
	if now-l.since < lossSlot {
		return tolerable
	}
	l.close(now, rate, limited)
	acked, lost := l.all.lasting()
	n := acked + lost
	open := false
	if !queue && l.lastLoss > 0 {
		var still, gone float64
		still, open = l.odds(acked, lost)
		gone, _ = l.odds(float64(l.all.acked), float64(l.all.lost))
		switch {
		case still > sure && lost <= maxTolerance*n:
			l.tolerance = min(max(l.tolerance, 1.5*lost/n), maxTolerance)
			l.restart(now)
			l.lastLoss = 0
			return ofThePath
		case gone < -sure:
			l.lastLoss = 0
			return answered
		}
	}
	full := n >= lossWindow
	tolerance := maxTolerance
	if !limited {
		tolerance = l.tolerance
		acked, lost = l.eager.lasting()
		n = acked + lost
	}
	if n < lossSample || open && !full {
		return tolerable
	}
	expected := tolerance * n
	if lost <= expected+2*math.Sqrt(expected*(1-tolerance))+2 {
		if full {
			l.restart(now)
			l.tolerance += (l.base - l.tolerance) / 128
		}
		return tolerable
	}
	l.restart(now)
	loss := lost / n
	l.lastLoss, l.lastRate = loss-math.Sqrt(loss*(1-loss)/n), rate // a verdict comes when chance makes it high
	return congestive
}

// expected is the share of packets whose loss says nothing of the rate: after a cut, the loss before it, until it is known whose it was.
func (l *lossTest) expected() float64 { return max(l.tolerance, min(l.lastLoss, maxTolerance)) }

// odds compares two explanations of the loss since the last verdict, at a rate that is lower now.
func (l *lossTest) odds(acked, lost float64) (odds float64, tells bool) {
	return l.compare(acked, lost, l.lastLoss, (1-l.lastLoss)*l.lastRate/l.rate)
}

// compare returns the logarithm of how much likelier a loss is with the path's own loss, which is the same at any rate, than with congestion, where a share
// of what is sent gets through. It tells nothing where the two expect about the same.
func (l *lossTest) compare(acked, lost, own, through float64) (odds float64, tells bool) {
	congested := max(1-through, l.base/2, 0.01)
	if congested > own*2/3 {
		return 0, false
	}
	return lost*math.Log(own/congested) + acked*math.Log((1-own)/(1-congested)), true
}

// close ends the slot under way.
func (l *lossTest) close(now time.Duration, rate float64, limited bool) {
	l.all.add(l.slot)
	if !limited {
		l.eager.add(l.slot)
	}
	l.rate = min(cmp.Or(l.rate, rate), rate)
	l.clean = l.slot.lost == 0
	l.slot, l.since = fates{}, now
}

// lose takes a loss. After a slot without any a slot begins with the first, so that a burst isn't in two.
func (l *lossTest) lose(now time.Duration) {
	if l.slot.lost == 0 && l.clean {
		l.all.acked += l.slot.acked
		l.slot, l.since = fates{}, now
	}
	l.slot.lost++
}

// restart forgets the packets so far, which were sent at an older rate.
func (l *lossTest) restart(now time.Duration) {
	l.slot, l.all, l.eager, l.rate, l.since = fates{}, gathered{}, gathered{}, 0, now
}
