package congestion

import (
	"math"
	"time"
)

const (
	backoff      = 0.87                   // of what was delivered, after congestion
	growth       = 30.0                   // bytes a second, each second, for each root of the rate
	maxGrowth    = 0.25                   // of the rate, a round, beyond the known capacity
	startupGain  = 2.0                    // of the rate, a round
	startupLead  = 2.2                    // of what was delivered, at most
	fastest      = 0.05                   // of the rate, a second: the most it can be
	nearly       = 0.95                   // of the known capacity: below, growth is
	hurry        = 3.0                    // times as fast
	beyond       = 1.05                   // of the known capacity
	farBeyond    = 1.15                   // delivered of the known capacity: there is more
	recutAfter   = time.Second            // congestion that stays is answered again
	rebaseAfter  = 3                      // answers in vain: the path is longer than it was
	following    = 0.7                    // delivered of the rate: less, and growth waits for the link
	overloaded   = 0.9                    // delivered of what was asked: the link is full
	drainHorizon = 400 * time.Millisecond // a queue that long is drained at the lowest gain
	minGain      = 0.3
	maxGain      = 0.8
)

// settle ends a round whose feedback is complete, and judges it.
func (a *Adaptive) settle(now time.Duration) {
	r := &a.round
	took := a.lastFeedback - r.start
	done := r.done || r.low > 0 && took > 2*a.queue.base.get()+minRound
	if !r.open || !done || took < minRound && a.inflight > 0 {
		return
	}
	ended := *r
	a.accrue(now)
	limited := a.pacer.limited()
	if ended.low > 0 {
		a.queue.sample(now, ended.low, ended.stale)
		a.longest = ended.high
	}
	if ended.cold || took < minRound {
		a.out.reset()
	} else if !ended.stale {
		a.out.add(ended.through(a.loss.tolerance), took)
	}
	*r = round{}
	if a.inflight > 0 {
		r.begin(a.lastFeedback, a.lastID, false)
	}
	if ended.stale || took < minRound {
		return
	}
	a.judge(now, &ended, took, limited)
}

func (a *Adaptive) judge(now time.Duration, r *round, took time.Duration, limited bool) {
	delivered := r.through(a.loss.tolerance) / took.Seconds()
	congested := a.queue.long(a.cfg.TargetDelay, a.sendGap)
	if a.phase != Drain {
		congested = a.loss.congested(a.rate, congested) || congested
	}
	a.epoch.rounds++
	if !congested && a.phase != Drain {
		a.epoch.on = false
	}
	switch a.phase {
	case Startup:
		if congested {
			a.cut(now, r, limited)
		} else if !limited {
			a.rate = a.clamp(max(a.rate, min(a.rate*startupGain, delivered*startupLead)))
		}
	case Cruise:
		if congested {
			a.congested(now, r, limited)
		} else if !limited {
			a.grow(took)
		}
	case Drain:
		a.draining(now)
	}
}

// draining ends the drain when the queue is gone, or when it doesn't go.
func (a *Adaptive) draining(now time.Duration) {
	queue := a.queue.delay()
	empty := float64(a.inflight) <= a.capacity*a.queue.base.get().Seconds()
	switch {
	case empty || a.epoch.rounds > 1 && queue <= a.cfg.TargetDelay:
	case now < a.until:
		return
	case queue < a.drained*3/4:
		a.drained = queue
		a.until = now + a.drainTime(queue)
		return
	}
	a.phase = Cruise
	a.queue.restart()
	a.out.reset()
	a.loss.restart()
	a.deaf = a.lastID
	if a.inflight > 0 {
		a.round.begin(a.lastFeedback, a.lastID, false)
		a.round.stale = true
	}
}

// drainTime is how long a queue takes to go, and its going to show.
func (a *Adaptive) drainTime(queue time.Duration) time.Duration {
	return a.longest + time.Duration(float64(queue)/(1-a.gain))
}

// grow adds to the rate. The root makes a small flow gain on a large one that shares
// its link. Beyond the capacity that was last seen growth doubles each round. It waits
// for the link to follow.
func (a *Adaptive) grow(took time.Duration) {
	if a.out.rate() < following*a.rate {
		a.step = 0
		return
	}
	inc := min(growth*math.Sqrt(a.rate), fastest*a.rate) * took.Seconds()
	if out := a.out.rate(); a.rate > beyond*a.capacity && (out > overloaded*a.rate || out > farBeyond*a.capacity) {
		a.step = min(max(2*a.step, inc), maxGrowth*a.rate)
		inc = a.step
	} else {
		a.step = 0
		if a.rate < nearly*a.capacity {
			inc *= hurry
		}
	}
	a.rate = a.clamp(a.rate + inc)
}

// congested answers congestion in cruise once, and again at once while the link delivers less
// than the rate, but slowly otherwise, as the queue may be another's. If nothing helps, the
// queue isn't one.
func (a *Adaptive) congested(now time.Duration, r *round, limited bool) {
	e := &a.epoch
	out := a.out.rate()
	switch {
	case !e.on, a.out.n > 1 && out < following*a.rate, now-e.lastCut > recutAfter:
		if e.on && out > overloaded*a.rate {
			e.cuts++
		}
		if e.cuts >= rebaseAfter && r.low > 0 {
			a.queue.rebase(now)
			e.on, e.cuts = false, 0
			return
		}
		a.cut(now, r, limited)
	}
}

// cut lowers the rate below what the link delivers, and drains the queue. What an application
// that uses little gets delivered says nothing about the link, unless it is less than
// it asked for.
func (a *Adaptive) cut(now time.Duration, r *round, limited bool) {
	delivered := a.out.rate()
	a.step = 0
	if delivered == 0 {
		delivered = a.rate / startupGain
	} else if limited && r.through(a.loss.tolerance) >= overloaded*float64(r.sent) {
		return
	}
	if !a.epoch.on {
		a.epoch.cuts = 0
	}
	a.epoch.on, a.epoch.lastCut, a.epoch.rounds = true, now, 0
	a.accrue(now)
	a.capacity = min(delivered, a.rate)
	a.rate = a.clamp(min(a.rate, backoff*a.capacity))
	queue := a.queue.delay()
	a.gain = min(max(1-queue.Seconds()/drainHorizon.Seconds(), minGain), maxGain)
	a.until, a.drained = now+a.drainTime(queue), queue
	a.phase = Drain
}
