package netconn

import "time"

// rtt is the round-trip time measured by packets: from sending a packet to receiving its ack, the peer's tick included.
type rtt struct {
	smoothed, variance time.Duration // RFC 6298's 1/8 and 1/4
	min, last          time.Duration
	jitter             time.Duration // of the peer's packets, by their jitter clock
	lastClock          int16         // jitter clock of the peer's last packet, -1 none
	guessed            bool          // from empty packets so far, which the peer acks when it likes
	lastArrival        time.Duration
}

// sample takes a measured round trip. owed says that the peer had to ack the packet at once. An ack that wasn't owed may
// have waited for the peer's next packet, so the first owed one replaces it.
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

// clock takes the jitter clock of a received packet: the milliseconds part of its sending time. Jitter is the difference
// of two packets' spacing at sending and at arrival.
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

// wayBack tells how long what the peer sends waits in a queue, by the jitter clocks of its packets: the differences of their spacing at sending and at
// arrival add up to how much longer one took than another. That is compared with the least of the last 20 to 30 s.
type wayBack struct {
	ms    int           // jitter clock of the newest
	at    time.Duration // when that came
	took  time.Duration // longer than the first
	least [3]time.Duration
	began time.Duration // the first of these, which is of now
	on    bool
}

const (
	wayBackGap    = 400 * time.Millisecond // between two packets, at most: a clock tells milliseconds of a second
	wayBackBucket = 10 * time.Second
)

// heard takes the jitter clock of a packet, and returns how long it waited.
func (w *wayBack) heard(now time.Duration, ms int) time.Duration {
	if ms >= 1000 {
		w.on = false
		return 0
	}
	left := time.Duration((ms-w.ms+1000)%1000) * time.Millisecond
	if !w.on || now-w.at > wayBackGap || left > wayBackGap {
		*w = wayBack{ms: ms, at: now, began: now, on: true}
		return 0
	}
	w.took += now - w.at - left
	w.ms, w.at = ms, now
	for ; now-w.began >= wayBackBucket; w.began += wayBackBucket {
		w.least = [3]time.Duration{w.took, w.least[0], w.least[1]}
	}
	w.least[0] = min(w.least[0], w.took)
	return w.took - min(w.least[0], w.least[1], w.least[2])
}

// rates is bandwidth and loss over periods of a second.
type rates struct {
	start     time.Duration
	outAcked  uint64
	lossRate  float64 // moving average over 128 packets
	slowLoss  float64 // the same over 1024, for what comes seldom
	afterLoss float64 // the same of packets that follow a lost one, over 32 of them
	lost      bool    // the last packet was lost
	packets   int     // that slowLoss knows, and afterLoss, up to their spans
	losses    int

	base      Counters // at start
	periods   int      // since the rings were looked at
	ackedBase uint64
	figures   Rates
}

// Rates is a connection's bandwidth and loss over the last full second. OutLoss is of the packets whose fate became known in it: 0 while nothing comes back. InLoss has the sequences, too, that the peer
// leaves out on purpose (Config.Secret), one of some 1,300, and what was repeated on the way counts as received.
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

// average is a moving average over span values. While there are fewer it averages those, with a few zeros.
func average(v *float64, x float64, n *int, span int) {
	*n = min(*n+1, span-4)
	*v += (x - *v) / float64(*n+4)
}

// expect is the probability that a packet is lost, and that the next one is lost too. The two differ when losses come in
// bursts.
func (r *rates) expect() (loss, again float64) {
	loss = max(r.lossRate, r.slowLoss)
	if r.afterLoss > 2*loss+0.1 {
		return loss, r.afterLoss
	}
	return loss, loss
}

func (r *rates) tick(c *Conn) {
	if c.now-r.start >= ratePeriod {
		r.period(c)
	}
}

// period ends a period.
func (r *rates) period(c *Conn) {
	d := c.now - r.start
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
