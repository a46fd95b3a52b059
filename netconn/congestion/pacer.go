package congestion

import "time"

// pacer hands out credit at a rate. It counts what the application left unused,
// which tells whether the application or the rate was the limit.
type pacer struct {
	credit          float64 // bytes
	before          float64 // credit before it was last given some
	accrued, unused float64 // bytes since the last reset
	last            time.Duration
}

// maxDebt is how long an application that sent beyond its credit pays for it. What it sent has long been
// delivered or lost by then; without the bound a burst at a high rate would be paid for at a lower one.
const maxDebt = time.Second

// accrue gives credit for the time since the last call, up to limit bytes.
func (p *pacer) accrue(now time.Duration, rate, limit float64) {
	dt := now - p.last
	if dt <= 0 {
		return
	}
	p.last, p.before = now, p.credit
	add := rate * dt.Seconds()
	p.accrued += add
	p.credit = max(p.credit, -rate*maxDebt.Seconds()) + add
	if p.credit > limit {
		p.unused += min(add, p.credit-limit)
		p.credit = limit
	}
}

// left is the credit that was unused when the last time before now ended.
func (p *pacer) left(now time.Duration) float64 {
	if now > p.last {
		return p.credit
	}
	return p.before
}

// limited reports whether the application left more than a tenth unused since the
// last call, and begins anew.
func (p *pacer) limited() bool {
	yes := p.unused > p.accrued/10
	p.accrued, p.unused = 0, 0
	return yes
}

// steadyTick is how far apart ticks are always: the least of the last ones, so that a hitch isn't taken for the pace. With credit left, a loop may sleep
// because it has nothing to send, until a keep-alive: that counts as idleTick at most, or it would gather credit for all that time.
type steadyTick struct {
	gaps [3]uint32 // in ms
	n    uint32
}

// slowestTick is the longest pace that ticks may have: several long pauses behind each other aren't one.
const slowestTick = 4 * time.Second

// idleTick lets a loop of one tick a second have all of its rate at once: a tick is worth twice that.
const idleTick = time.Second / 2

func (s *steadyTick) add(gap time.Duration, idle bool) {
	if idle {
		gap = min(gap, idleTick)
	}
	s.gaps[s.n%3] = uint32(min(gap, slowestTick) / time.Millisecond)
	s.n++
}

func (s *steadyTick) steady() time.Duration {
	return time.Duration(min(s.gaps[0], s.gaps[1], s.gaps[2])) * time.Millisecond
}
