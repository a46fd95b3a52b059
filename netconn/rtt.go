package netconn

import "time"

// rtt is the round trip time as packets measure it: from a packet's departure to
// the arrival of the packet that acks it, the peer's tick included.
type rtt struct {
	smoothed, variance time.Duration // RFC 6298's 1/8 and 1/4
	min, last          time.Duration
	jitter             time.Duration // of the peer's packets, by their jitter clock
	lastClock          int16         // jitter clock of the peer's last packet, -1 none
	guessed            bool          // from empty packets so far, which the peer acks when it likes
	lastArrival        time.Duration
}

// sample takes a measured round trip. owed says that the peer owed an ack; one that it didn't may have waited for its next
// packet, so the first that it did takes its place.
func (r *rtt) sample(d time.Duration, owed bool) {
	r.last = d
	if r.smoothed == 0 || r.guessed {
		r.guessed = !owed
		r.smoothed, r.variance, r.min = d, d/2, d
		return
	}
	r.min = min(r.min, d)
	r.variance += ((d - r.smoothed).Abs() - r.variance) / 4
	r.smoothed += (d - r.smoothed) / 8
}

// jitterNoise is how many packets the jitter average spans (RFC 3550's and
// Unreal's noise factor).
const jitterNoise = 16

// clock takes the jitter clock of a packet of the peer: the milliseconds part of
// its departure. The spacing of two packets at departure and at arrival differ by jitter.
func (r *rtt) clock(now time.Duration, ms int) {
	if last := int(r.lastClock); last >= 0 && ms < 1000 && last < 1000 && now-r.lastArrival < time.Second {
		departed := time.Duration((ms-last+1000)%1000) * time.Millisecond
		d := (now - r.lastArrival - departed).Abs()
		if d < 500*time.Millisecond {
			r.jitter += (d - r.jitter) / jitterNoise
		}
	}
	r.lastClock, r.lastArrival = int16(ms), now
}

// rates is bandwidth and loss over periods of a second.
type rates struct {
	start     time.Duration
	outAcked  uint64
	lossRate  float64 // moving average over 128 packets
	slowLoss  float64 // the same over 1024, for what comes seldom
	afterLoss float64 // the same of packets that follow a lost one, over 32 of them
	lost      bool    // the last one was
	packets   int     // that slowLoss knows, and afterLoss, up to their spans
	losses    int

	base      Counters // at start
	periods   int      // since the rings were looked at
	ackedBase uint64
	figures   Rates
}

// Rates is a connection's bandwidth and loss over the last full second.
type Rates struct {
	OutBytes, InBytes, AckedBytes float64 // bytes a second
	OutPackets, InPackets         float64 // packets a second
	OutLoss, InLoss               float64 // 0 to 1
}

const ratePeriod = time.Second

func (r *rates) loss(lost bool) {
	x := 0.0
	if lost {
		x = 1
	}
	r.lossRate += (x - r.lossRate) / 128
	average(&r.slowLoss, x, &r.packets, 1024)
	if r.lost {
		average(&r.afterLoss, x, &r.losses, 32)
	}
	r.lost = lost
}

// average is a moving average over span values that begins as that of the values there are, and a few zeros.
func average(v *float64, x float64, n *int, span int) {
	*n = min(*n+1, span-4)
	*v += (x - *v) / float64(*n+4)
}

// expect is how likely a packet is lost, and how likely the next one too: the same, unless losses come
// in bursts.
func (r *rates) expect() (loss, again float64) {
	loss = max(r.lossRate, r.slowLoss)
	if r.afterLoss > 2*loss+0.1 {
		return loss, r.afterLoss
	}
	return loss, loss
}

func (r *rates) tick(c *Conn) {
	d := c.now - r.start
	if d < ratePeriod {
		return
	}
	n, b := c.Counters, r.base
	per := func(a, b uint64) float64 { return float64(a-b) / d.Seconds() }
	share := func(part, other uint64) float64 {
		if part == 0 {
			return 0
		}
		return float64(part) / float64(part+other)
	}
	r.figures = Rates{
		OutBytes: per(n.BytesSent, b.BytesSent), InBytes: per(n.BytesReceived, b.BytesReceived),
		AckedBytes: per(r.outAcked, r.ackedBase),
		OutPackets: per(n.PacketsSent, b.PacketsSent), InPackets: per(n.PacketsReceived, b.PacketsReceived),
		OutLoss: share(n.PacketsLost-b.PacketsLost, n.PacketsAcked-b.PacketsAcked),
		InLoss:  share(n.PacketsMissed-b.PacketsMissed, n.PacketsReceived-b.PacketsReceived),
	}
	r.base, r.ackedBase, r.start = n, r.outAcked, c.now
	if r.periods++; r.periods >= shrinkPeriods {
		r.periods = 0
		c.shrink()
	}
}
