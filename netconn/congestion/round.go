package congestion

import (
	"cmp"
	"time"
)

// round measures a round trip, or a part of a long one: it begins when feedback ends the one before, and
// ends with the feedback on the last packet that had been sent by then, or after maxRound. It begins and
// ends at feedback, so that the acks a peer holds back and lets go at once count
// with the time they were held.
type round struct {
	open, done bool
	cold       bool // began with a packet after silence, or after packets that say nothing: its delivery can't be timed
	start      time.Duration
	end        int64 // packet whose feedback ends the round
	low, high  time.Duration
	acked      int           // bytes
	lost       int           // bytes
	packets    int           // acked or lost
	squares    float64       // of their bytes
	delivered  int           // packets acked
	first      int64         // of those
	sending    time.Duration // that the rate asked for them
	newest     time.Duration // when the newest acked packet left, 0 none
	idle       bool          // they were sent while the application left credit unused
	wants      bool          // some of that because the peer has no room for more
}

// minRound bounds a round from below, for networks faster than a game.
const minRound = 20 * time.Millisecond

// maxRound bounds it from above: where a round trip is longer, the rate follows what comes back several times in it.
const (
	maxRound       = 200 * time.Millisecond
	roundsInFlight = 8
)

func (r *round) begin(now time.Duration, end int64, cold bool) {
	*r = round{open: true, cold: cold, start: now, end: end}
}

// rtt takes a round trip time without and with what the ack waited on its way.
func (r *round) rtt(there, whole time.Duration) {
	if there == 0 {
		return
	}
	if r.low == 0 || there < r.low {
		r.low = there
	}
	r.high = max(r.high, whole)
}

// through is the bytes that got through the link, those among them that a lossy path
// loses anyway.
func (r *round) through(tolerance float64) float64 {
	return float64(r.acked) + min(float64(r.lost), tolerance*float64(r.acked+r.lost))
}

// asked is the rate in bytes a second at which its packets were sent, 0 when there were none.
func (r *round) asked() float64 {
	if r.sending <= 0 {
		return 0
	}
	return float64(r.acked+r.lost) / r.sending.Seconds()
}

// sentRates is the rates at which the packets in flight were sent.
type sentRates struct {
	since [16]rateSince // by number
	n, at int           // how many there have been, and the one of the last feedback
}

// rateSince is a rate in bytes a second from a packet on.
type rateSince struct {
	id   uint32 // its low bits
	rate float32
}

// from says that packets from id on are sent at a rate. When there are too many, it holds from the last change on.
func (s *sentRates) from(id int64, rate float64) {
	if s.n > 0 {
		last := &s.since[(s.n-1)%len(s.since)]
		if last.rate == float32(rate) {
			return
		}
		if s.n-s.at >= len(s.since) {
			last.rate = float32(rate)
			return
		}
	}
	s.since[s.n%len(s.since)] = rateSince{uint32(id), float32(rate)}
	s.n++
}

// of is the rate at which packet id was sent. Ids rise from call to call.
func (s *sentRates) of(id int64) float64 {
	for s.at+1 < s.n && int32(uint32(id)-s.since[(s.at+1)%len(s.since)].id) >= 0 {
		s.at++
	}
	return float64(s.since[s.at%len(s.since)].rate)
}

// delivery is the rate of delivery over the last rounds, as many as it takes to
// span deliverySpan and to carry deliveryBytes, and the rate at which what was delivered had been sent.
type delivery struct {
	rounds [deliveryRounds]outcome
	n      int           // since the last reset
	newest time.Duration // when the newest acked packet left, 0 unknown
}

// outcome is what became of the packets of one round, or of several.
type outcome struct {
	sent    float32       // bytes
	acked   float32       // of them
	through float32       // acked, and those that the path loses anyway
	asked   float32       // bytes that the rate of that time allowed
	took    time.Duration // in which the feedback came
	left    time.Duration // in which what was acked had been sent, more than 0; 0 unknown
	idle    bool          // the application left credit unused
	busy    bool          // each packet waited in the queue
}

const (
	deliverySpan   = 150 * time.Millisecond
	deliveryBytes  = 12000
	deliveryRounds = 8    // at most
	keepsUp        = 0.92 // the time in which packets left, of that in which they were delivered, at 60 bursts a second: the queue grows by less than one of them in deliverySpan
	keepsUpBursts  = 60   // with more of them a second it is nearer to 1, as each is less,
	mostBursts     = 128  // up to these
	nearlyWhole    = 0.95 // delivered of what was sent: it doesn't overflow
	shareBatches   = 8
	shareSpan      = 400 * time.Millisecond // at most
)

// add takes a round, in which time its feedback came, from which round trip time on there is a queue, and which share of packets is lost anyway.
func (d *delivery) add(r *round, took, queue time.Duration, expected float64) {
	out := outcome{sent: float32(r.acked + r.lost), acked: float32(r.acked), through: float32(r.through(expected)), took: took, idle: r.idle, busy: r.low > queue}
	if out.asked = out.sent; r.sending > 0 {
		out.asked *= float32(took.Seconds() / r.sending.Seconds())
	}
	if d.newest > 0 && r.newest > 0 {
		out.left = max(r.newest-d.newest, 1) // a burst leaves in no time
	}
	if r.newest > 0 {
		d.newest = r.newest
	}
	d.rounds[d.n%deliveryRounds] = out
	d.n++
}

func (d *delivery) reset() { d.n, d.newest = 0, 0 }

// rate is in bytes a second, 0 when unknown.
func (d *delivery) rate() float64 {
	sum := d.sum(deliverySpan)
	return sum.rate()
}

func (o *outcome) rate() float64 {
	if o.took <= 0 {
		return 0
	}
	return float64(o.through) / o.took.Seconds()
}

// share is how much of what was sent has been delivered, 1 when unknown, over at least shareBatches of batches that
// come a time apart: where a round begins and ends is known to one of them.
func (d *delivery) share(gap time.Duration) float64 {
	sum := d.sum(max(deliverySpan, min(shareBatches*gap, shareSpan)))
	if sum.asked == 0 {
		return 1
	}
	return float64(sum.through / sum.asked)
}

// capacity is what the link lets through, in bytes a second, 0 when unknown. What an application that uses less than the rate gets delivered says
// what it had, unless there was a queue all the time that grew or overflowed. So the rate counts then, less by as much as the packets' delivery
// took longer than their sending, and less what got lost if that is congestion. With tested a lossTest was the only sign of congestion: then only
// what arrived counts, as the loss that is tolerated may be congestion as well.
func (d *delivery) capacity(lossy, tested bool, apart time.Duration) (rate float64, idle bool) {
	sum := d.sum(deliverySpan)
	rate = sum.rate()
	if rate > 0 && tested && !sum.idle {
		return float64(sum.acked) / sum.took.Seconds(), false
	}
	if rate == 0 || !sum.idle {
		return rate, sum.idle
	}
	took := sum.took.Seconds()
	slower := min(sum.left.Seconds()/took, 1)
	through := float64(sum.through / sum.sent)
	switch full := sum.sent >= deliveryBytes; {
	case full && sum.busy && (slower < 1-(1-keepsUp)*min(max(apart.Seconds(), 1./mostBursts)*keepsUpBursts, 1) || through < nearlyWhole):
		return rate, true
	case !lossy:
		through = 1
	}
	return max(rate, slower*through*float64(sum.asked)/took), true
}

// sum is of the last rounds that span a time and carry deliveryBytes.
func (d *delivery) sum(span time.Duration) (sum outcome) {
	sum.busy = true
	for i := 1; i <= min(d.n, deliveryRounds) && (sum.took < span || sum.through < deliveryBytes); i++ {
		r := &d.rounds[(d.n-i)%deliveryRounds]
		sum.sent += r.sent
		sum.acked += r.acked
		sum.through += r.through
		sum.asked += r.asked
		sum.took += r.took
		sum.left += cmp.Or(r.left, r.took)
		sum.idle, sum.busy = sum.idle || r.idle, sum.busy && r.busy
	}
	return sum
}
