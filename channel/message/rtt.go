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

// vain is rounds of packets with messages that were lost without one that arrived. From manyVain on
// one packet is sent each wait, by the default Resend where the queue's is longer, as its loss is told. The first, and every second one, has the oldest message only: what is further
// ahead may be what the receiver has no memory for, and it refuses whole packets. The others are full: where few packets arrive, each should carry much. When the oldest arrives at once, and did so the last time, that was it: then reach begins with one
// message, and grows as a congestion window does. When it gets lost as well it is the path, or a game that receives nothing.
type vain struct {
	rounds  int
	heardAt time.Duration // of the last round's first loss
	wroteAt time.Duration
	reach   int // how many messages from the oldest on may be sent
	calm    int // half of what was too many; beyond it reach grows slowly
	atOnce  int // how often in a row the oldest arrived at once
}

const manyVain = 3

// lost notes that a packet written at a time is known to be lost now. Those that left before a loss was heard of are of one round.
func (v *vain) lost(written, now time.Duration) {
	if v.rounds == 0 || written > v.heardAt {
		v.rounds, v.heardAt = v.rounds+1, now
	}
}

// acked notes that a packet with n messages, written at a time, has arrived.
func (v *vain) acked(written time.Duration, n, window int) {
	switch {
	case v.rounds < manyVain || written <= v.heardAt:
		if v.reach >= v.calm {
			n = 1
		}
		v.reach = min(v.reach+n, window)
	case v.rounds > manyVain:
		v.atOnce, v.reach = 0, window
	default:
		if v.atOnce++; v.atOnce > 1 {
			v.reach, v.calm = 1, v.reach/2
		}
	}
	v.rounds = 0
}

// ahead is how many messages from the oldest on may be sent now.
func (v *vain) ahead() int64 {
	if v.rounds >= manyVain && (v.rounds-manyVain)%2 == 0 {
		return 1
	}
	return int64(v.reach)
}

// wait is how long a message waits for its ack before it is sent again.
func (r *roundTrip) wait(resend time.Duration) time.Duration {
	if r.smoothed == 0 {
		return firstWait * resend
	}
	return max(resend, min(r.smoothed+max(4*r.deviation, r.smoothed/4), maxWait))
}
