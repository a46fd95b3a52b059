package congestion

import "time"

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
	sent       int           // bytes, sent since the start
	packets    int           // acked or lost
	first      int64         // of those
	sending    time.Duration // that the rate asked for them
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

func (r *round) rtt(d time.Duration) {
	if d == 0 {
		return
	}
	if r.low == 0 || d < r.low {
		r.low = d
	}
	r.high = max(r.high, d)
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
	bytes [8]float64
	asked [8]float64 // bytes that the rate of that time allowed
	took  [8]time.Duration
	n     int // rounds since the last reset
}

const (
	deliverySpan  = 150 * time.Millisecond
	deliveryBytes = 12000
	shareBatches  = 8
	shareSpan     = 400 * time.Millisecond // at most
)

// add takes a round: the bytes that it delivered, those that had been sent, in which time, and in which time the feedback came.
func (d *delivery) add(bytes, sent float64, sending, took time.Duration) {
	asked := sent
	if sending > 0 {
		asked *= took.Seconds() / sending.Seconds()
	}
	d.bytes[d.n&7], d.asked[d.n&7], d.took[d.n&7] = bytes, asked, took
	d.n++
}

func (d *delivery) reset() { d.n = 0 }

// rate is in bytes a second, 0 when unknown.
func (d *delivery) rate() float64 {
	rate, _ := d.rates(deliverySpan)
	return rate
}

// share is how much of what was sent has been delivered, 1 when unknown, over at least shareBatches of batches that
// come a time apart: where a round begins and ends is known to one of them.
func (d *delivery) share(gap time.Duration) float64 {
	rate, asked := d.rates(max(deliverySpan, min(shareBatches*gap, shareSpan)))
	if asked == 0 {
		return 1
	}
	return rate / asked
}

func (d *delivery) rates(span time.Duration) (rate, asked float64) {
	var took time.Duration
	for i := 1; i <= min(d.n, 8) && (took < span || rate < deliveryBytes); i++ {
		rate += d.bytes[(d.n-i)&7]
		asked += d.asked[(d.n-i)&7]
		took += d.took[(d.n-i)&7]
	}
	if took <= 0 {
		return 0, 0
	}
	return rate / took.Seconds(), asked / took.Seconds()
}
