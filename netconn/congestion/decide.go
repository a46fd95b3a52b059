package congestion

import (
	"cmp"
	"math"
	"time"
)

const (
	backoff      = 0.89                    // of what was delivered, after congestion
	growth       = 31.0                    // bytes a second, each second, for each root of the rate
	fastest      = 0.06                    // of the rate, a second: the most it can be
	slowest      = 0.02                    // and the least
	hurry        = 5.0                     // times as fast after congestion
	hurryTime    = 600 * time.Millisecond  // for that long
	nearly       = 0.98                    // of the known capacity, at most
	beyond       = 1.05                    // of the known capacity: there may be more
	calm         = 1700 * time.Millisecond // without congestion: there may be more
	calmRate     = 1.25e6                  // bytes a second, for which that is calm; who has less looks for more sooner
	calmPower    = 0.25                    // as the fourth root
	minCalm      = 0.6                     // of calm
	maxCalm      = 1.3                     // of calm
	probe        = 600.0                   // bytes a second beyond what was delivered, for each root of that, while more isn't known to be there
	minProbe     = 0.3                     // of what was delivered
	maxProbe     = 1.5                     // of it
	stepTime     = 115 * time.Millisecond  // in which growth doubles then
	doublingTrip = 0.75                    // round trips in which the rate doubles at most
	changedTrip  = 0.6                     // and while the link delivers muchBeyond of the known capacity
	doublings    = 2.0                     // of growth in a round, at most
	maxGrowth    = 1.0                     // of the rate, the most it grows in that time or a round
	farBeyond    = 1.15                    // delivered of the known capacity: there is more
	muchBeyond   = 1.3                     // delivered of it: the link has changed
	startupGain  = 2.0                     // of the rate, a round trip
	startupLead  = 2.2                     // of what was delivered, when the link doesn't follow
	recutAfter   = time.Second             // congestion that stays is answered again
	inVain       = 2                       // drains in vain: the same
	kept         = 0.75                    // of what was delivered lately: less, and others may have taken the link
	keptLeapt    = 0.5                     // and where the round trip time rose at once
	rebaseAfter  = 3                       // answers in vain: the path is longer than it was
	following    = 0.7                     // delivered of the rate: less, and growth waits for the link
	overloaded   = 0.9                     // delivered of what was asked: the link is full
	drainHorizon = 400 * time.Millisecond  // a queue that long is drained at the lowest gain
	minGain      = 0.3
	maxGain      = 0.8
)

// settle ends a round whose feedback is complete, and judges it. A queue that grows far beyond the target
// ends it at once.
func (a *Adaptive) settle(now time.Duration) {
	r := &a.round
	if !r.open {
		return
	}
	took := a.lastFeedback - r.start
	low, alarm := a.recent.low(), false
	if base := a.queue.base.get(); base > 0 && low > base+2*a.unclear() {
		alarm = a.phase != Drain
	}
	done := r.done || alarm || r.low > 0 && took > min(2*a.trip()+minRound, max(maxRound, 3*a.sendGap, a.longest/roundsInFlight))
	if !done || took < minRound {
		return
	}
	ended := *r
	if alarm {
		ended.low = low
	}
	a.accrue(now)
	limited := a.pacer.limited()
	if limited && !a.full && !a.wants {
		a.idle = a.lastID
	}
	a.full, ended.wants = false, a.wants
	a.wants = false
	ended.idle = ended.first <= a.idle
	if ended.low > 0 {
		a.queue.sample(now, ended.low, ended.delivered, a.apart(), ended.idle)
		a.longest = max(ended.high, ended.low)
		if a.hushed++; !ended.idle || float64(ended.acked+ended.lost) >= float64(a.cfg.MinRate)*took.Seconds() {
			a.hushed = 0
		}
		if a.hushed >= len(a.queue.last) {
			a.queue.hush(now)
		}
	}
	if ended.cold {
		a.out.reset()
	} else {
		a.out.add(&ended, took, a.queue.base.get()+a.unclear(), a.loss.expected())
	}
	*r = round{}
	if a.inflight > 0 {
		r.begin(a.lastFeedback, a.lastID, false)
	}
	if now > a.judged {
		a.judged, a.paid = now, a.rate
	}
	a.judge(now, &ended, took, limited)
}

// apart is the time between bursts, or between a peer's acks where those come seldom.
func (a *Adaptive) apart() time.Duration {
	if a.ackGap > maxGrain {
		return max(a.sendGap, a.ackGap)
	}
	return a.sendGap
}

// unclear is how long a delay may be that need not be a queue.
func (a *Adaptive) unclear() time.Duration {
	return a.cfg.TargetDelay + a.sendGap + a.queue.noise()
}

func (a *Adaptive) judge(now time.Duration, r *round, took time.Duration, limited bool) {
	delivered := r.through(a.loss.expected()) / took.Seconds()
	queued := a.queue.long(a.unclear())
	if a.queue.delay() > 2*a.unclear() {
		a.queue.quiet()
	}
	lossy, tested := a.nearlyAll.lost(r), false
	if a.phase != Drain && !lossy {
		switch a.loss.verdict(now, cmp.Or(r.asked(), a.rate), queued, limited && !r.wants) {
		case congestive:
			lossy = queued || a.phase != Startup || !a.steps.excuse(&a.loss)
			tested = lossy
		case ofThePath:
			a.restore(now, &a.before)
		case answered:
			a.before = memory{}
		}
	}
	congested := queued || lossy
	a.leapt(now)
	if !a.epoch.seen && r.first > a.epoch.cutID {
		a.epoch.seen = true
		if a.phase == Drain && a.epoch.again {
			a.out.reset()
		}
	}
	if a.epoch.seen {
		a.epoch.acked += r.acked
		a.epoch.lost += r.lost
	}
	if !congested && a.phase != Drain && !a.lingers() {
		a.epoch.on = false
	}
	if congested && a.phase != Drain {
		if queued {
			a.before = memory{}
		} else if tested && a.rate > a.before.rate {
			a.before = memory{a.rate, a.capacity, a.phase}
		}
	}
	tested = tested && !queued
	switch a.phase {
	case Startup:
		switch {
		case congested:
			a.cut(now, lossy, tested)
		case limited:
			a.lately.sample(now, a.out.rate())
		case r.cold || a.out.share(a.sendGap+a.queue.noise()) >= following:
			a.rate = a.clamp(a.rate * math.Pow(startupGain, a.part(r, took)))
		default:
			a.rate = a.clamp(max(a.rate, min(a.rate*math.Pow(startupGain, a.part(r, took)), delivered*startupLead)))
		}
	case Cruise:
		if congested {
			a.congested(now, r, lossy, tested)
		} else if !limited {
			a.grow(now, r, took)
		}
	case Drain:
		if a.out.n > 1 && a.queue.delay() > 2*a.unclear() && a.drains() {
			if a.epoch.seen {
				a.epoch.cutID, a.epoch.seen, a.epoch.again = a.lastID, false, true
			}
			a.lower(now, a.out.rate()) // there is a queue, so that is what the link lets through
		}
		a.draining(now)
	}
}

// nearlyAll notices that hardly anything arrives: no path that is worth its rate loses so much at random.
type nearlyAll struct { // since the last verdict
	acked, gone float64 // bytes
	squares     float64 // of the packets' sizes
}

const (
	nearlyAllPackets = 24 // a verdict needs so many of equal size
	nearlyAllShare   = 3  // lost bytes for each that arrived
)

// lost takes a round, and reports whether hardly anything of the last ones arrived. Where sizes differ, more packets are needed until no few
// of them decide: a large one that is lost among acks tells as little as any other.
func (n *nearlyAll) lost(r *round) bool {
	n.acked += float64(r.acked)
	n.gone += float64(r.lost)
	n.squares += r.squares
	if all := n.acked + n.gone; all == 0 || all*all < nearlyAllPackets*n.squares {
		return false
	}
	bad := n.gone > nearlyAllShare*n.acked
	*n = nearlyAll{}
	return bad
}

// memory is what was known before the rate was lowered for loss alone, which a lossTest measured: a rate at which hardly anything arrives never comes back.
type memory struct {
	rate, capacity float64
	phase          Phase
}

// restore takes back a cut for loss that turned out to be the path's own, or for a queue that turned out to be a longer path.
func (a *Adaptive) restore(now time.Duration, before *memory) {
	if before.rate <= a.rate {
		return
	}
	a.accrue(now)
	a.rate, a.capacity, a.phase = before.rate, before.capacity, before.phase
	*before = memory{}
}

// draining ends the drain when the queue is gone, or when it doesn't go.
func (a *Adaptive) draining(now time.Duration) {
	if a.doubt.refuted(a.queue.base.get(), 2*a.cfg.TargetDelay+a.queue.noise()) {
		a.queue.listen(now, a.doubt.delay)
		a.restore(now, &a.doubt.before)
		a.doubt, a.epoch.on, a.guessed = doubt{}, false, false
		a.queue.restart()
		a.forget(now)
		return
	}
	queue := a.queue.delay()
	empty := float64(a.inflight) <= a.capacity*a.trip().Seconds()
	switch {
	case empty || a.epoch.seen && queue <= a.cfg.TargetDelay+a.queue.noise():
	case now < a.until:
		return
	case queue < a.drained*3/4:
		a.drained = queue
		a.until = now + a.drainTime(queue)
		return
	}
	vain := (!empty || a.epoch.seen) && queue >= a.drained*3/4 && queue > a.unclear()
	a.phase = Cruise
	if a.guessed {
		a.phase, a.capacity, a.guessed = Startup, 0, false
	}
	a.calmSince = now
	if vain {
		a.vain(now)
	}
	a.queue.restart()
	a.forget(now)
}

// vain notes that a drain left the delay as it was. What stays while less is sent isn't our queue: the path is longer than it was. It reports
// whether that is sure: after two drains, or one where the delay had risen at once.
func (a *Adaptive) vain(now time.Duration) bool {
	e := &a.epoch
	e.counted = true
	if a.overflows() || a.yielded() || !e.far && !a.stays() {
		return false
	}
	if e.vain++; e.vain < inVain && !e.far {
		return false
	}
	a.queue.rebase(now)
	a.restore(now, &e.before)
	e.on, e.vain = false, 0
	return true
}

// lingers reports whether a delay that a drain has left as it was is still there, though it is no sign of congestion now: where the ticks are far
// apart it seems a tick longer or shorter from round to round.
func (a *Adaptive) lingers() bool {
	return a.epoch.on && a.epoch.vain > 0 && a.epoch.leapt && a.queue.delay() > a.cfg.TargetDelay+a.queue.noise() && a.stays()
}

// stays reports whether the delay after a drain is what it was when that began: as far as the time between bursts tells where it had risen
// at once, and exactly otherwise, as it may be the queue of others.
func (a *Adaptive) stays() bool {
	change := a.queue.delay() - a.epoch.queue
	if a.epoch.leapt {
		return change.Abs() <= a.epoch.queue/4+a.sendGap
	}
	return change.Abs() <= a.cfg.TargetDelay
}

// overflows reports whether more is lost of what was sent since the last cut than the path loses anyway: there is a queue, and it is full.
func (a *Adaptive) overflows() bool {
	e := &a.epoch
	return float64(e.lost) > a.loss.tolerance*float64(e.acked+e.lost)+float64(2*a.cfg.MaxPacket)
}

// yielded reports whether the rate before the drain was much less than what was delivered lately: others may have taken the link, and
// whether we drain it doesn't show.
func (a *Adaptive) yielded() bool {
	if a.epoch.leapt {
		return a.epoch.before.rate < keptLeapt*a.lately.get()
	}
	return a.epoch.before.rate < kept*a.lately.get()
}

// leapt notes that the round trip time rose at once while there is congestion.
func (a *Adaptive) leapt(now time.Duration) {
	if a.epoch.on && a.lately.get() > 0 && a.recent.leapt(now, a.unclear()) {
		a.epoch.leapt = true
		a.epoch.far = a.epoch.far || a.recent.leapt(now, a.unclear()+3*a.sendGap/2)
	}
}

// drains reports whether what is delivered amid a drain, when that isn't the known capacity, tells of the link. A queue that is drained keeps
// the link busy; where the delay stays, and no more is delivered than is sent in the drain, there may be none: the path is longer, and
// lowering the rate by what is delivered would lower it again and again.
func (a *Adaptive) drains() bool {
	out := a.out.rate()
	switch {
	case out > farBeyond*a.capacity:
		return true
	case out >= overloaded*a.capacity:
		return false
	case !a.epoch.again, a.queue.delay() < a.drained*3/4:
		return true
	case !a.epoch.seen:
		return a.queue.delay() > a.drained*5/4
	}
	return out > farBeyond*a.Rate() || a.queue.delay() > a.drained*5/4
}

// drainTime is how long a queue takes to go, and its going to show.
func (a *Adaptive) drainTime(queue time.Duration) time.Duration {
	return a.longest + time.Duration(float64(queue)/(1-a.gain))
}

// grow adds to the rate, as long as the link follows. The root makes a small flow gain on a large one that
// shares its link.
func (a *Adaptive) grow(now time.Duration, r *round, took time.Duration) {
	share := a.out.share(a.sendGap + a.queue.noise())
	if share < following {
		a.step = 0
		return
	}
	if share > overloaded {
		a.proven = a.out.rate()
		a.best = max(a.best, a.proven)
		a.lately.sample(now, a.proven)
	}
	inc := min(max(growth*math.Sqrt(a.rate), slowest*a.rate), fastest*a.rate) * took.Seconds()
	known := a.rate <= beyond*a.capacity && now-a.calmSince <= a.calmTime()
	follows := share > overloaded || a.out.rate() > farBeyond*a.capacity
	switch {
	case !known && follows && a.queue.delay() <= a.unclear():
		a.rate = a.clamp(a.rate + min(a.leap(r, inc, took), a.probe()))
		return
	case now-a.calmSince < hurryTime && a.rate < nearly*a.capacity:
		inc = min(inc*hurry, nearly*a.capacity-a.rate)
	}
	a.step = 0
	a.rate = a.clamp(a.rate + inc)
}

// probe is how far the rate may grow at most until it is known that the link delivers more than the known capacity: most often it doesn't,
// and what was sent until that shows is lost.
func (a *Adaptive) probe() float64 {
	if a.out.rate() >= farBeyond*a.capacity {
		return math.MaxFloat64
	}
	known := max(a.capacity, a.out.rate())
	return max(known+min(max(probe*math.Sqrt(known), minProbe*known), maxProbe*known)-a.rate, 0)
}

// leap is the growth of a round where there may be more than the known capacity, given what growth is
// otherwise: it doubles in each stepTime, twice in a round trip at most. A queue of about the time between bursts may be one or not, so it waits for a
// few rounds then.
func (a *Adaptive) leap(r *round, inc float64, took time.Duration) float64 {
	part := min(took.Seconds()/stepTime.Seconds(), a.part(r, took))
	if a.rate < a.best/4 {
		inc = max(inc, part*a.rate/4)
	}
	a.waited++
	if a.queue.delay() <= a.unclear()-a.sendGap/2 || a.waited == 3 || a.out.rate() > muchBeyond*a.capacity {
		a.step *= math.Exp2(min(took.Seconds()/stepTime.Seconds(), doublings*part))
		a.waited = 0
	}
	a.step = min(max(a.step, inc/part), maxGrowth*a.rate)
	return a.step * part
}

// part is the part of a doubling that a round may bring: less than all of it where a round is less than a round trip. It is more once the
// link has turned out to be another.
func (a *Adaptive) part(r *round, took time.Duration) float64 {
	base, trips := a.trip(), doublingTrip
	if r.done || base == 0 {
		return 1
	}
	if a.phase == Cruise && a.out.rate() > muchBeyond*a.capacity {
		trips = changedTrip
	}
	return min(took.Seconds()/(trips*base.Seconds()), 1)
}

// calmTime is how long a time without congestion has to be until there may be more: shorter where rounds
// are long, and where there has been much more. Of the flows that share a link the smallest looks first, and ends the others' calm with the
// queue it makes: so they draw level.
func (a *Adaptive) calmTime() time.Duration {
	if a.rate < a.best/4 {
		return calm / 3
	}
	t := time.Duration(float64(calm) * min(max(math.Pow(a.rate/calmRate, calmPower), minCalm), maxCalm))
	return max(t-5*a.trip()/2, calm/2)
}

// congested answers congestion in cruise once, and again at once while the link delivers less
// than the rate, but slowly otherwise, as the queue may be another's. If nothing helps, the
// queue isn't one.
func (a *Adaptive) congested(now time.Duration, r *round, lossy, tested bool) {
	e := &a.epoch
	out := a.out.rate()
	switch {
	case e.on && e.leapt && !e.counted && a.stays() && a.vain(now):
	case e.on && a.out.n == 0 && a.stays(): // a round that is timed tells more
	case e.on && !e.counted && a.stays() && a.vain(now):
	case !e.on, a.out.n > 1 && out < following*a.rate, now-e.lastCut > recutAfter:
		if e.on && out > overloaded*a.rate {
			e.cuts++
		}
		if e.cuts >= rebaseAfter && r.low > 0 && !a.overflows() {
			a.queue.rebase(now)
			e.on, e.cuts = false, 0
			return
		}
		a.cut(now, lossy, tested)
	}
}

// cut lowers the rate below what the link delivers, and drains the queue. Where the application uses less than the rate, nothing is lost, and
// delivery takes no longer than sending did, it isn't our queue.
func (a *Adaptive) cut(now time.Duration, lossy, tested bool) {
	delivered, idle := a.out.capacity(lossy, tested, a.apart())
	a.step = 0
	first := a.phase == Startup && a.best == 0
	if delivered == 0 {
		delivered, a.guessed = a.rate/startupGain, first
	} else if idle && delivered >= overloaded*a.rate {
		return
	}
	if !a.epoch.on {
		a.epoch.cuts, a.epoch.vain = 0, 0
		a.epoch.leapt, a.epoch.far, a.epoch.before = false, false, memory{a.rate, a.capacity, a.phase}
		if a.phase == Startup {
			a.epoch.before.rate /= startupGain
		} else {
			a.epoch.before.rate = min(a.rate, beyond*max(a.capacity, a.proven))
		}
		a.proven = 0
	}
	a.steps, a.doubt = startSteps{}, doubt{}
	if first && !lossy {
		a.doubt = doubt{delay: a.queue.delay(), sendGap: a.sendGap, last: a.lastID, before: memory{a.rate, a.capacity, a.phase}}
	}
	a.epoch.on, a.epoch.lastCut, a.epoch.cutID, a.epoch.seen, a.epoch.again = true, now, a.lastID, false, false
	a.lower(now, min(delivered, a.rate))
	a.phase, a.epoch.queue, a.epoch.counted = Drain, a.queue.delay(), false
	a.epoch.acked, a.epoch.lost = 0, 0
}

// lower takes capacity for the link's, and drains the queue.
func (a *Adaptive) lower(now time.Duration, capacity float64) {
	a.accrue(now)
	a.capacity = capacity
	a.rate = a.clamp(backoff * capacity)
	queue := max(a.queue.delay(), seconds(float64(a.inflight), capacity)-a.trip())
	a.gain = min(max(1-queue.Seconds()/drainHorizon.Seconds(), minGain), maxGain)
	a.until, a.drained = now+a.drainTime(queue), queue
}
