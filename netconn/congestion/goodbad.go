package congestion

import "time"

// The numbers of GoodBad are those of the published scheme.
const (
	GoodInterval     = time.Second / 30       // between packets in good mode
	BadInterval      = time.Second / 10       // between packets in bad mode
	RTTThreshold     = 250 * time.Millisecond // above: conditions are bad
	InitialPenalty   = 4 * time.Second        // how long conditions must be good in bad mode, at first
	MinPenalty       = time.Second            // and at least
	MaxPenalty       = 60 * time.Second       // and at most
	penaltyReduction = 10 * time.Second       // of good mode halve the penalty
	penaltyGrowth    = 10 * time.Second       // good mode shorter than that doubles it
	goodSilence      = time.Second            // without an ack of what was sent: conditions are bad
)

// GoodBad is the two-speed scheme published by Glenn Fiedler in "Reliability and
// congestion avoidance over UDP": 30 packets a second while the smoothed round trip time is
// at most 250 ms, 10 a second otherwise. Leaving good mode within 10 s of entering it doubles
// the time of good conditions that bad mode asks for before it ends; each 10 s of good
// mode halve that time. It starts in bad mode. Loss doesn't matter to it, nor the sizes
// of packets; those without bunches aren't counted. The scheme doesn't say what a path without acks is: here conditions are bad before the
// first ack, and when none has come for a second although packets were sent.
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
}

// NewGoodBad returns a controller in bad mode. maxPacket is the size in bytes of the packets
// its Budget admits; 0 for 1200.
func NewGoodBad(maxPacket int) *GoodBad {
	if maxPacket <= 0 {
		maxPacket = defaultMaxPacket
	}
	return &GoodBad{packet: maxPacket, penalty: InitialPenalty}
}

// Good reports whether the mode is good.
func (g *GoodBad) Good() bool { return g.good }

// Penalty is how long conditions must have been good before bad mode ends.
func (g *GoodBad) Penalty() time.Duration { return g.penalty }

// SendInterval is the time between two packets.
func (g *GoodBad) SendInterval() time.Duration {
	if g.good {
		return GoodInterval
	}
	return BadInterval
}

// OnSent takes the packet's turn. A packet that left before its turn moves the next one
// further away.
func (g *GoodBad) OnSent(now time.Duration, _ int64, _ int) {
	if !g.silent {
		g.silent, g.since = true, now
	}
	interval := g.SendInterval()
	g.next = max(g.next, now-interval) + interval
}

// OnSentEmpty does nothing: an end that acks each packet of its peer would never have a turn for its own.
func (g *GoodBad) OnSentEmpty(time.Duration, int64, int) {}

// OnAck takes a round trip time.
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

// Tick judges the conditions of the time since the last one.
func (g *GoodBad) Tick(now time.Duration) {
	if !g.started {
		g.started, g.last = true, now
	}
	dt := now - g.last
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

// Budget is one packet when its turn has come.
func (g *GoodBad) Budget(now time.Duration) int {
	if now < g.next {
		return 0
	}
	return g.packet
}

// Rate is the pace of packets of the largest size, in bytes a second.
func (g *GoodBad) Rate() float64 { return float64(g.packet) / g.SendInterval().Seconds() }

// NextDeadline is when the next packet's turn comes.
func (g *GoodBad) NextDeadline(now time.Duration) (time.Duration, bool) {
	return g.next, now < g.next
}
