package message

import "time"

// roundTrip tells how long the ack of a packet takes, as RFC 6298 does for a timer. The connection tells of losses;
// the timer finds what it doesn't tell of.
type roundTrip struct {
	smoothed, deviation time.Duration
	ackedAt             time.Duration // when the newest packet acked since the last sample was written
	acked               bool
}

const (
	// firstWait is how many times Resend a message waits before anything was acked.
	firstWait = 5
	// maxWait bounds what a peer that acks late makes messages wait, unless Resend is longer.
	maxWait = 2 * time.Second
)

// ack takes the time at which a packet that is acked now was written.
func (r *roundTrip) ack(at time.Duration) {
	r.ackedAt, r.acked = max(r.ackedAt, at), true
}

// sample measures, at the first Write behind an ack: acks come without the time.
func (r *roundTrip) sample(now time.Duration) {
	if !r.acked {
		return
	}
	r.acked = false
	rtt := max(now-r.ackedAt, 1)
	if r.smoothed == 0 {
		r.smoothed, r.deviation = rtt, rtt/2
		return
	}
	r.deviation += (max(rtt-r.smoothed, r.smoothed-rtt) - r.deviation) / 4
	r.smoothed += (rtt - r.smoothed) / 8
}

// vain is rounds of packets with messages that were lost without one that arrived: mostly the receiver has no memory, and refuses them. From manyVain on
// one packet is sent each wait, by the default Resend where the queue's is longer, as its loss is told. It has the oldest message only: what is further ahead may be what
// there is no memory for. Then reach grows as a congestion window does.
type vain struct {
	rounds  int
	heardAt time.Duration // of the last round's first loss
	wroteAt time.Duration
	reach   int // how many messages from the oldest on may be sent
	calm    int // half of what was too many; beyond it reach grows slowly
}

const manyVain = 3

// lost notes that a packet written at a time is known to be lost now. Those that left before a loss was heard of are of one round.
func (v *vain) lost(written, now time.Duration) {
	if v.rounds > 0 && written <= v.heardAt {
		return
	}
	v.rounds, v.heardAt = v.rounds+1, now
	if v.rounds == manyVain {
		v.reach, v.calm = 1, v.reach/2
	}
}

// acked notes that a packet with n messages has arrived.
func (v *vain) acked(n, window int) {
	v.rounds = 0
	if v.reach >= v.calm {
		n = 1
	}
	v.reach = min(v.reach+n, window)
}

// wait is how long a message waits for its ack before it is sent again.
func (r *roundTrip) wait(resend time.Duration) time.Duration {
	if r.smoothed == 0 {
		return firstWait * resend
	}
	return max(resend, min(r.smoothed+max(4*r.deviation, r.smoothed/4), maxWait))
}
