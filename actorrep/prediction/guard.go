package prediction

import "time"

// guard limits a client's simulated time to the server's elapsed time.
//
// Invariant: discrepancy <= max; and while paying, discrepancy + share <= max, so that
// what is taken of the share can't break the first.
type guard struct {
	max     time.Duration // < 0: there is no guard
	drift   float64
	payBack float64

	last        time.Duration // server time it is elapsed to
	discrepancy time.Duration // simulated less elapsed
	paying      bool
	share       time.Duration // of the server's time, while paying
}

// elapse accounts for elapsed time of the server.
func (g *guard) elapse(now time.Duration) {
	el := now - g.last
	if el <= 0 {
		return
	}
	g.last = now
	if g.discrepancy > 0 {
		g.discrepancy = max(0, g.discrepancy-time.Duration(g.drift*float64(el)))
	}
	g.discrepancy -= el
	if g.paying {
		g.share += time.Duration((1 - g.payBack) * float64(el))
		g.paying = g.discrepancy+g.share > 0
	}
}

// settle limits how far below 0 the discrepancy may be. It is called once a tick and not for each message, because a server that stood
// still gets many moves at once.
func (g *guard) settle() { g.discrepancy = max(g.discrepancy, -max(g.max, 0)) }

// take requests dt of simulated time. It returns how much is granted, and whether the client has just exceeded the limit.
func (g *guard) take(dt time.Duration) (granted time.Duration, detected bool) {
	if g.max < 0 {
		return dt, false
	}
	if !g.paying {
		if g.discrepancy+dt <= g.max {
			g.discrepancy += dt
			return dt, false
		}
		granted = max(0, g.max-g.discrepancy)
		g.discrepancy += granted
		g.paying, g.share = true, 0
		return granted, true
	}
	granted = min(dt, g.share)
	g.share -= granted
	g.discrepancy += granted
	return granted, false
}
