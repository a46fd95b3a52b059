package congestion

import "time"

// The numbers of GoodBad are those of the published scheme.
const (
	GoodInterval     = time.Second / 30       // between packets in good mode
	BadInterval      = time.Second / 10       // between packets in bad mode
	RTTThreshold     = 250 * time.Millisecond // above: conditions are bad
	InitialPenalty   = 4 * time.Second        // the penalty at first: how long conditions must be good before bad mode ends
	MinPenalty       = time.Second            // the least penalty that halving leads to
	MaxPenalty       = 60 * time.Second       // the greatest penalty
	penaltyReduction = 10 * time.Second       // of good mode halve the penalty
	penaltyGrowth    = 10 * time.Second       // good mode shorter than that doubles it
	goodSilence      = time.Second            // without an ack of what was sent: conditions are bad
)

// GoodBad is the two-speed scheme published by Glenn Fiedler in "Reliability and
// congestion avoidance over UDP". It sends 30 packets a second in good mode and 10 in bad
// mode. Conditions are good while the smoothed round trip time is at most 250 ms; loss and
// the sizes of packets don't matter. GoodBad starts in bad mode, and leaves it when conditions
// have been good for the penalty time, 4 s at first. Leaving good mode within 10 s of entering
// it doubles the penalty; each 10 s of good mode halve it. Packets without bunches aren't
// counted. The scheme doesn't define a path without acks: here conditions are bad before the
// first ack, and when none has come for a second although packets were sent. A time without ticks counts as a second at most.
// A loop whose ticks are always further apart than packets sends several in a tick: what is due in 4 s at most.
type GoodBad struct {
	packet  int
	good    bool
	penalty time.Duration
	goodFor time.Duration // conditions have been good
	reduce  time.Duration // good mode since the penalty last changed

	rtt     float64 // smoothed by a tenth, in ns; 0 before the first ack
	silent  bool    // no ack has come since the packet sent at since
	since   time.Duration
	last    time.Duration
	next    time.Duration // when the next packet is due
	started bool
	ticks   steadyTick
}

// NewGoodBad returns a controller in bad mode. maxPacket is the largest packet in bytes, which
// is what Budget returns; 0 or less is 1200.
func NewGoodBad(maxPacket int) *GoodBad {
	if maxPacket <= 0 {
		maxPacket = defaultMaxPacket
	}
	return &GoodBad{packet: maxPacket, penalty: InitialPenalty}
}

// Good reports whether the mode is good.
func (g *GoodBad) Good() bool { return g.good }

// Penalty returns how long conditions must have been good before bad mode ends.
func (g *GoodBad) Penalty() time.Duration { return g.penalty }

// SendInterval returns the time between two packets: GoodInterval or BadInterval.
func (g *GoodBad) SendInterval() time.Duration {
	if g.good {
		return GoodInterval
	}
	return BadInterval
}

// OnSent moves the next packet's turn an interval on. A packet that left before its own turn
// moves it further away, to a second from now at most.
func (g *GoodBad) OnSent(now time.Duration, _ int64, _ int) {
	if !g.silent {
		g.silent, g.since = true, now
	}
	interval := g.SendInterval()
	g.next = min(max(g.next, now-max(interval, g.ticks.steady()))+interval, now+maxDebt)
}

// OnSentEmpty does nothing. If it used up a turn, an end that acks each packet of its peer would never have one for
// its own data.
func (g *GoodBad) OnSentEmpty(time.Duration, int64, int) {}

// OnAck adds a round trip time to the smoothed one. An rtt of 0 only shows that the path works.
func (g *GoodBad) OnAck(_ time.Duration, _ int64, _ int, rtt time.Duration) {
	g.silent = false
	if rtt == 0 {
		return
	}
	if g.rtt == 0 {
		g.rtt = float64(max(rtt, 1))
	}
	g.rtt += (float64(rtt) - g.rtt) * 0.1
}

// OnLost does nothing.
func (g *GoodBad) OnLost(time.Duration, int64, int) {}

// Tick judges conditions for the time since the last Tick, and may change the mode.
func (g *GoodBad) Tick(now time.Duration) {
	if !g.started {
		g.started, g.last = true, now
	}
	if now > g.last {
		g.ticks.add(now-g.last, g.next <= g.last)
	}
	dt := min(now-g.last, goodSilence) // what was between two ticks that are further apart isn't known
	g.last = now
	fine := g.rtt > 0 && time.Duration(g.rtt) <= RTTThreshold && !(g.silent && now-g.since > goodSilence)
	if g.good {
		g.tickGood(dt, fine)
	} else {
		g.tickBad(dt, fine)
	}
}

func (g *GoodBad) tickGood(dt time.Duration, fine bool) {
	if !fine {
		if g.goodFor < penaltyGrowth {
			g.penalty = min(2*g.penalty, MaxPenalty)
		}
		g.good, g.goodFor, g.reduce = false, 0, 0
		return
	}
	g.goodFor += dt
	g.reduce += dt
	if g.reduce > penaltyReduction {
		g.penalty = max(g.penalty/2, MinPenalty)
		g.reduce = 0
	}
}

func (g *GoodBad) tickBad(dt time.Duration, fine bool) {
	if !fine {
		g.goodFor = 0
		return
	}
	g.goodFor += dt
	if g.goodFor > g.penalty {
		g.good, g.goodFor, g.reduce = true, 0, 0
	}
}

// Budget returns the largest packet in bytes when the next packet's turn has come, and 0 before.
func (g *GoodBad) Budget(now time.Duration) int {
	if now < g.next {
		return 0
	}
	return g.packet
}

// Rate returns the rate of packets of the largest size, in bytes a second.
func (g *GoodBad) Rate() float64 { return float64(g.packet) / g.SendInterval().Seconds() }

// NextDeadline returns when the next packet's turn comes. ok is false when it has come.
func (g *GoodBad) NextDeadline(now time.Duration) (time.Duration, bool) {
	return g.next, now < g.next
}
