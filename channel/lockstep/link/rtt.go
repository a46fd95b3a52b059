package link

import "time"

// rttClock is what datagrams can't improve on in the variance.
const rttClock = 10 * time.Millisecond

// roundTrip is Jacobson's and Karels' estimator.
type roundTrip struct {
	srtt, rttvar time.Duration
	known        bool
}

func (r *roundTrip) sample(d time.Duration) {
	if d < 0 {
		return // the caller's clock went back
	}
	if !r.known {
		r.known, r.srtt, r.rttvar = true, d, d/2
		return
	}
	r.rttvar += ((d - r.srtt).Abs() - r.rttvar) / 4
	r.srtt += (d - r.srtt) / 8
}

// rto is the time after which a message sent now counts as lost.
func (r *roundTrip) rto(c *Config) time.Duration {
	if !r.known {
		return c.InitialRTO
	}
	return min(max(r.srtt+max(4*r.rttvar, rttClock), c.MinRTO), c.MaxRTO)
}

// pings remembers when the last eight pings were sent.
type pings struct {
	at     [8]time.Duration
	number [8]uint16
	last   uint16
}

// start numbers a ping sent now; 0 is no ping's number.
func (p *pings) start(now time.Duration) uint16 {
	p.last++
	if p.last == 0 {
		p.last = 1
	}
	p.number[p.last&7], p.at[p.last&7] = p.last, now
	return p.last
}

// answered is when ping number was sent, once.
func (p *pings) answered(number uint16) (at time.Duration, ok bool) {
	i := number & 7
	if number == 0 || p.number[i] != number {
		return 0, false
	}
	p.number[i] = 0
	return p.at[i], true
}
