package congestion

import "time"

// round measures a round trip: it begins when feedback ends the one before, and
// ends with the feedback on the last packet that had been sent by then. It begins and
// ends at feedback, so that the acks a peer holds back and lets go at once count
// with the time they were held.
type round struct {
	open, done bool
	cold       bool // began with a packet after silence: its delivery can't be timed
	start      time.Duration
	end        int64 // packet whose feedback ends the round
	low, high  time.Duration
	acked      int // bytes
	lost       int // bytes
	sent       int // bytes, sent since the start
	packets    int // acked or lost
}

// minRound bounds a round from below, for networks faster than a game.
const minRound = 20 * time.Millisecond

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

// add takes a round: the bytes that it delivered, and the rate at which they had been sent.
func (d *delivery) add(bytes, rate float64, took time.Duration) {
	d.bytes[d.n&7], d.asked[d.n&7], d.took[d.n&7] = bytes, rate*took.Seconds(), took
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
