package congestion

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/setting"
)

// AdaptiveConfig has the settings of Adaptive. The zero value is right for the internet.
type AdaptiveConfig struct {
	// InitialRate is the rate in bytes a second before the first feedback. Default 30000. A
	// rate that is too high fills the queue of a slow link for a moment. One that is too low
	// costs a round trip for each doubling.
	InitialRate int
	// MinRate and MaxRate bound the rate, in bytes a second: MinRate from 1, MaxRate up to 1<<40, and InitialRate between
	// them. Default 4000 and 1250000000 (10 Gbit/s). On a path of less than MinRate, MinRate is offered all the time, and the rest lost.
	MinRate, MaxRate int
	// TargetDelay is the queueing delay above which the rate is lowered. The delay that the
	// game's own ticks cause doesn't count. Default 10 ms, 100 µs to 1 s. A lower value loses bandwidth to
	// jitter; a higher one makes the queue longer.
	TargetDelay time.Duration
	// LossTolerance is the share of packets that may be lost without lowering the
	// rate, 0.4 at most. Default 0.05; negative: none may be lost.
	LossTolerance float64
	// MaxPacket is the largest packet in bytes, 64 to 65535. Default 1200.
	MaxPacket int
	// MaxBurst bounds the credit that gathers between two ticks, as time at the current rate. A
	// loop whose ticks are always further apart gets all its credit. Default 100 ms, 1 ms to 1 s.
	MaxBurst time.Duration
}

// ErrConfig is wrapped by the errors of NewAdaptive for settings that can't work.
var ErrConfig = errors.New("congestion: config")

const defaultMaxPacket = 1200

func (c AdaptiveConfig) filled() AdaptiveConfig {
	c.InitialRate = cmp.Or(c.InitialRate, 30_000)
	c.MinRate = cmp.Or(c.MinRate, 4000)
	c.MaxRate = cmp.Or(c.MaxRate, 1_250_000_000)
	c.TargetDelay = cmp.Or(c.TargetDelay, 10*time.Millisecond)
	c.LossTolerance = cmp.Or(c.LossTolerance, 0.05)
	c.MaxPacket = cmp.Or(c.MaxPacket, defaultMaxPacket)
	c.MaxBurst = cmp.Or(c.MaxBurst, 100*time.Millisecond)
	c.LossTolerance = max(c.LossTolerance, 0)
	return c
}

func (c *AdaptiveConfig) validate() error {
	switch {
	case c.MinRate < 1 || int64(c.MaxRate) > 1<<40 || c.MinRate > c.InitialRate || c.InitialRate > c.MaxRate:
		return fmt.Errorf("%w: rates must rise from 1 to at most %d: MinRate %d, InitialRate %d, MaxRate %d", ErrConfig, int64(1)<<40, c.MinRate, c.InitialRate, c.MaxRate)
	}
	return setting.First(
		setting.Within(ErrConfig, "TargetDelay", c.TargetDelay, 100*time.Microsecond, time.Second),
		setting.Within(ErrConfig, "MaxBurst", c.MaxBurst, time.Millisecond, time.Second),
		setting.Within(ErrConfig, "LossTolerance", c.LossTolerance, 0, maxTolerance),
		setting.Within(ErrConfig, "MaxPacket", c.MaxPacket, 64, 65535))
}

// Phase is what Adaptive is doing.
type Phase uint8

// The phases of Adaptive.
const (
	// Startup doubles the rate each round trip until the link is full.
	Startup Phase = iota
	// Cruise adds a little each round trip, and more the longer there is no congestion.
	Cruise
	// Drain sends less than the link delivers, until the queue is gone.
	Drain
)

// String returns the phase's name.
func (p Phase) String() string {
	switch p {
	case Startup:
		return "startup"
	case Cruise:
		return "cruise"
	case Drain:
		return "drain"
	}
	return "unknown"
}

// Adaptive finds the bandwidth of a path and keeps its queue short. It is the
// default for the internet; the package's doc says how it works.
type Adaptive struct {
	cfg   AdaptiveConfig
	phase Phase

	rate      float64       // bytes a second, of cruise
	capacity  float64       // delivered at the last congestion, 0 unknown
	guessed   bool          // nobody knows what was delivered then: capacity is half of the rate
	best      float64       // the highest that was delivered, bytes a second
	proven    float64       // delivered lately without congestion, bytes a second
	lately    recentBest    // the most of it
	step      float64       // growth of the last round beyond the known capacity, bytes a second
	waited    int           // rounds since step last doubled
	gain      float64       // of capacity, while draining
	rates     sentRates     // at which what is in flight was sent
	judged    time.Duration // end of the last round
	paid      float64       // rate until then: what is sent at that time is paid for with credit from before
	before    memory        // of the last cut for loss alone
	until     time.Duration // end of the drain, unless it goes on
	drained   time.Duration // queue when that was set
	calmSince time.Duration // end of the last drain

	epoch  epoch
	hushed int // rounds in a row in which less than MinRate was sent

	nearlyAll nearlyAll
	steps     startSteps
	doubt     doubt

	ticks  steadyTick
	round  round
	out    delivery
	loss   lossTest
	queue  queueDelay
	recent recentRTT
	pacer  pacer

	inflight     int
	lastID       int64
	deaf         int64 // packets up to this say nothing of the path now
	idle         int64 // the newest packet when the application last left credit unused
	full         bool  // as much was in flight as may be, in this round: that leaves credit unused as well
	wants        bool  // credit was left, in this round, only because the peer has no room for more
	silenced     bool  // nothing has been heard since the rate was halved for that
	lastCall     time.Duration
	late         time.Duration // when this process last came late: what it found then had waited for it
	awaited      time.Duration // when feedback should have come
	held         time.Duration // when feedback last came so long after that, that it had waited for the peer or the path
	lastSent     time.Duration
	lastFeedback time.Duration
	silentSince  time.Duration // feedback is awaited since
	longest      time.Duration // round trip time of the last round
	tickGap      time.Duration // smoothed time between ticks
	sendGap      time.Duration // smoothed time between bursts
	ackGap       time.Duration // smoothed time between feedback
	lastTick     time.Duration
	started      bool
	back         time.Duration // for which acks wait on their way
}

// epoch is a time of congestion: it ends when a round is without.
type epoch struct {
	on          bool
	lastCut     time.Duration
	cuts        int
	again       bool          // its drain was lowered by what was delivered of packets sent in it
	vain        int           // drains that left the queue as it was
	cutID       int64         // the last packet that had been sent at the last cut
	seen        bool          // a round of packets that were sent since has ended
	leapt       bool          // it began with a round trip time that had risen at once
	far         bool          // by more than bursts of others can make it
	queue       time.Duration // when its last drain began
	counted     bool          // that drain was in vain
	acked, lost int           // bytes of what was sent since the last cut
	before      memory        // of what was known before its first cut
}

// NewAdaptive returns a controller, or an error that wraps ErrConfig.
func NewAdaptive(cfg AdaptiveConfig) (*Adaptive, error) {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Adaptive{
		cfg: cfg, rate: float64(cfg.InitialRate), gain: 1, deaf: -1, idle: -1,
		loss: lossTest{base: cfg.LossTolerance, tolerance: cfg.LossTolerance},
	}, nil
}

// Phase returns what the controller is doing now.
func (a *Adaptive) Phase() Phase { return a.phase }

// Rate returns the rate in bytes a second.
func (a *Adaptive) Rate() float64 {
	if a.phase == Drain {
		return a.clamp(a.gain * a.capacity)
	}
	return a.rate
}

// BaseRTT returns the round trip time of the path without queues; 0 before it is known.
func (a *Adaptive) BaseRTT() time.Duration { return a.queue.base.get() }

// Inflight returns the bytes sent that are neither acked nor lost yet.
func (a *Adaptive) Inflight() int { return a.inflight }

func (a *Adaptive) clamp(rate float64) float64 {
	return min(max(rate, float64(a.cfg.MinRate)), float64(a.cfg.MaxRate))
}

// OnSent takes a packet's bytes from the credit.
func (a *Adaptive) OnSent(now time.Duration, id int64, bytes int) {
	a.start(now)
	a.wake(now)
	a.accrue(now)
	a.pacer.credit -= float64(bytes)
	if now > a.judged {
		a.rates.from(id, a.rate)
	} else {
		a.rates.from(id, a.paid)
	}
	if gap := now - a.lastSent; gap > time.Millisecond {
		a.sendGap = smooth(a.sendGap, min(gap, maxGrain))
	}
	if a.inflight == 0 {
		a.silentSince, a.awaited = now, now+a.longest
		if idle := now - a.lastFeedback; a.lastFeedback == 0 || idle > a.pause(bytes) {
			a.round.begin(now, id, true)
		} else if !a.round.open {
			a.round.begin(a.lastFeedback, id, a.deaf == a.lastID || a.isStale(now))
		}
	} else if !a.round.open {
		a.round.begin(now, id, true)
	}
	a.inflight += bytes
	a.lastID, a.lastSent = id, now
}

// pause is how long nothing may be in flight because of the rate and of the game's ticks: after a longer one
// the application had nothing to send.
func (a *Adaptive) pause(bytes int) time.Duration {
	return 2 * (seconds(float64(bytes), a.Rate()) + a.tickGap)
}

// OnReturn says how long acks wait in the queue of the way back from now on: that is no queue of ours.
func (a *Adaptive) OnReturn(wait time.Duration) { a.back = max(wait-a.cfg.TargetDelay, 0) }

// OnAck counts a delivered packet and its round trip time.
func (a *Adaptive) OnAck(now time.Duration, id int64, bytes int, rtt time.Duration) {
	says := a.feedback(now, id, bytes)
	there := a.there(rtt)
	if rtt > 0 && !a.isStale(now) {
		a.recent.step(now, there) // also of a packet sent in a drain: the path may become longer then
		a.doubt.sample(id, there)
	}
	if !says {
		return
	}
	a.round.acked += bytes
	a.round.delivered++
	a.round.rtt(there, rtt)
	if rtt > 0 {
		a.round.newest = now - rtt
		a.recent.sample(now, there)
	}
	a.loss.slot.acked++
	if a.starts(id) {
		a.steps.at(a.rates.of(id)).acked++
	}
}

// there is a round trip time without what the ack waited on its way back: no less than the base, as that wait is known to a tick. Where it would be much less,
// what was said of the way back is wrong.
func (a *Adaptive) there(rtt time.Duration) time.Duration {
	there, base := rtt-a.back, a.queue.base.get()
	if rtt == 0 || there <= 0 || there < base-maxNoise {
		return rtt
	}
	return max(there, min(rtt, base))
}

// trip is the round trip time without a queue of ours; 0 before it is known.
func (a *Adaptive) trip() time.Duration {
	if base := a.queue.base.get(); base > 0 {
		return base + a.back
	}
	return 0
}

// OnLost counts a lost packet.
func (a *Adaptive) OnLost(now time.Duration, id int64, bytes int) {
	if !a.feedback(now, id, bytes) {
		return
	}
	a.round.lost += bytes
	a.loss.lose(now)
	if a.starts(id) {
		a.steps.at(a.rates.of(id)).lost++
	}
}

// feedback reports whether the packet says something of the path as it is now.
func (a *Adaptive) feedback(now time.Duration, id int64, bytes int) bool {
	a.wake(now)
	if now > a.lastFeedback {
		a.settle(now)
		a.hold(now)
		if a.lastFeedback > 0 && !a.isStale(now) {
			a.ackGap = smooth(a.ackGap, min(now-a.lastFeedback, maxAckGap))
		}
	}
	if a.silenced {
		a.silenced = false
		a.forget(now)
	}
	a.lastFeedback, a.silentSince, a.awaited = now, now, now
	a.inflight = max(a.inflight-bytes, 0)
	if id <= a.deaf || a.isStale(now) {
		return false
	}
	r := &a.round
	if r.packets == 0 {
		r.first = id
	}
	r.packets++
	r.squares += float64(bytes) * float64(bytes)
	if rate := a.rates.of(id); rate > 0 {
		r.sending += seconds(float64(bytes), rate)
	}
	if id >= r.end {
		r.done = true
	}
	return true
}

// wake finds out that this process has stood still: what is in flight was delivered long before its acks are
// taken, so it says nothing. After less than that only what waited to be taken says nothing, and the round begins anew; what
// is later than ticks are on average counts, so a process whose ticks are never even isn't blind.
func (a *Adaptive) wake(now time.Duration) {
	if now-a.lastCall > max(asleep, 4*a.tickGap) && a.lastCall > 0 {
		a.forget(now)
		a.silentSince, a.awaited, a.late = now, now, now
	} else if a.tickGap > 0 && now-a.lastCall > 3*a.tickGap+minLate {
		a.accrue(now)
		a.pacer.limited()
		a.round, a.awaited, a.late = round{}, now, now
	}
	a.lastCall = now
}

// isLate reports whether this process comes too late to time what it finds.
func (a *Adaptive) isLate(now time.Duration) bool { return a.late > 0 && now == a.late }

// isStale reports whether what comes now has waited for this process, or for the peer's.
func (a *Adaptive) isStale(now time.Duration) bool {
	return a.isLate(now) || a.held > 0 && now == a.held
}

// hold finds out that feedback comes long after it should have: the peer's process was kept from running, or the path stood still, and what comes now
// has waited there. A queue lets acks come one after the other instead. What comes next counts, however late: the path may have become slower.
func (a *Adaptive) hold(now time.Duration) {
	if a.ackGap > 0 && now-a.awaited > heldGaps*a.ackGap+minLate && a.held < a.lastFeedback && !a.isLate(now) {
		a.held, a.round = now, round{}
	}
}

// forget makes what is in flight say nothing.
func (a *Adaptive) forget(now time.Duration) {
	a.deaf, a.round = a.lastID, round{}
	a.out.reset()
	a.loss.restart(now)
	a.recent.restart()
}

// Tick judges the round that has ended, if one has.
func (a *Adaptive) Tick(now time.Duration) {
	a.start(now)
	a.wake(now)
	if gap := now - a.lastTick; gap > 0 {
		a.tickGap = smooth(a.tickGap, gap)
		a.ticks.add(gap, a.pacer.left(now) > 0)
		a.lastTick = now
	}
	a.accrue(now)
	a.settle(now)
	if a.phase == Drain {
		a.draining(now)
	}
	if a.inflight > 0 && now-a.silentSince > a.patience() {
		a.silence(now)
	}
}

// smooth averages over about eight samples, from the first one on.
func smooth(average, sample time.Duration) time.Duration {
	if average == 0 {
		return sample
	}
	return average + (sample-average)/8
}

func (a *Adaptive) start(now time.Duration) {
	if a.started {
		return
	}
	a.started = true
	a.pacer.last, a.lastTick, a.lastSent = now, now, now
	a.pacer.credit = a.creditLimit()
}

// creditLimit is how much credit may gather: what one and a half ticks ask for.
func (a *Adaptive) creditLimit() float64 {
	window := min(max(a.tickGap*3/2, minBurst), max(a.cfg.MaxBurst, a.ticks.steady()*3/2))
	return max(a.Rate()*window.Seconds(), 2*float64(a.cfg.MaxPacket))
}

const (
	minBurst = 10 * time.Millisecond
	maxGrain = 100 * time.Millisecond

	maxAckGap = time.Second
)

// OnPeerFull says that the application wants more than it sends in this round.
func (a *Adaptive) OnPeerFull() { a.wants = true }

func (a *Adaptive) accrue(now time.Duration) { a.pacer.accrue(now, a.Rate(), a.creditLimit()) }

// window bounds the bytes in flight: half more than the rate asks for, so that a path that
// fell silent isn't sent into for long.
func (a *Adaptive) window() int {
	if a.longest == 0 {
		return math.MaxInt
	}
	return whole(1.5*a.rate*(a.longest+a.sendGap).Seconds()) + 4*a.cfg.MaxPacket
}

// patience is how long feedback may stay away. The first may take as long as any, and a peer may ack seldom.
func (a *Adaptive) patience() time.Duration {
	if a.longest == 0 {
		return maxPatience
	}
	return min(a.longest+max(minPatience, 2*a.ackGap), maxPatience)
}

// curiosity is the time between packets while as much is in flight as may be. They go on, at MinRate or less: only the
// feedback on a later packet tells that the end of a queue was lost, or that a long queue is gone.
func (a *Adaptive) curiosity() time.Duration {
	asks := min(a.patience()/2, a.trip()+minPatience)
	return max(asks, seconds(float64(a.cfg.MaxPacket), float64(a.cfg.MinRate)))
}

const (
	minLate     = 10 * time.Millisecond  // and three ticks without a call: the process was kept from running
	heldGaps    = 6                      // times the time between feedback, beyond when it should have come: the peer held it
	asleep      = 250 * time.Millisecond // and four ticks without a call: the process stood still
	minPatience = 400 * time.Millisecond
	maxPatience = 4 * time.Second
)

// silence halves the rate when nothing is heard of what is in flight, down to where it began. The path that comes
// back may be another: it is found out anew. What was sent until it is back says nothing of it.
func (a *Adaptive) silence(now time.Duration) {
	a.accrue(now)
	a.silentSince, a.silenced = now, true
	a.rate = a.clamp(max(min(a.rate, float64(a.cfg.InitialRate)), a.rate/2))
	a.phase, a.capacity, a.step = Startup, 0, 0
	a.before = memory{}
	a.epoch.on = false
	a.forget(now)
}

// Budget returns the credit in bytes, at most the room that the bound on bytes in flight leaves. Without room a
// single packet may still leave now and then: its ack tells what became of the others.
func (a *Adaptive) Budget(now time.Duration) int {
	a.start(now)
	a.accrue(now)
	room := a.window() - a.inflight
	if room <= 0 {
		a.full = true
		if now-a.lastSent > a.curiosity() {
			return a.cfg.MaxPacket
		}
		return 0
	}
	return min(whole(math.Ceil(a.pacer.credit)), room)
}

// NextDeadline returns when there is credit again, or when a single packet may leave although as many bytes are in
// flight as may be. ok is false while there is a budget.
func (a *Adaptive) NextDeadline(now time.Duration) (time.Duration, bool) {
	if a.Budget(now) > 0 {
		return 0, false
	}
	if a.inflight >= a.window() {
		return a.lastSent + a.curiosity() + 1, true
	}
	return now + seconds(-a.pacer.credit, a.Rate()) + time.Microsecond, true
}
