package netconn

import "time"

// reserve is what copies leave of the bandwidth: twice what the game uses in a tick, or half of what it leaves of the rate. They would take what it wants in its
// next tick otherwise.
type reserve struct {
	used  int           // bytes of packets with bunches since the last tick, without copies
	bytes float64       // twice what the game uses in a tick, on average
	owed  int           // bytes that copies may take although that doesn't leave so much
	at    time.Duration // of the last tick
}

const (
	reserveTime = 250 * time.Millisecond // of the average
	owedPart    = 16                     // copies get one byte of so many when the game uses all
	mostOwed    = 1500                   // a packet
)

// leaves reports whether copies may take bytes of a budget.
func (r *reserve) leaves(budget, bytes int) bool {
	return budget > 0 && (float64(budget-bytes) >= r.bytes || r.owed >= bytes)
}

// took notes that they do.
func (r *reserve) took(budget, bytes int) {
	if float64(budget-bytes) < r.bytes {
		r.owed -= bytes
	}
}

// tick ends a tick, in which who sends what the game leaves took beside bytes. all says that the game left nothing.
func (r *reserve) tick(now time.Duration, beside int, rate float64, all bool) {
	used := max(0, r.used-beside)
	grant := (int(rate*min(now-r.at, reserveTime).Seconds()) - used) / 2
	if all {
		grant = used / owedPart
	}
	r.owed = min(r.owed+max(grant, 0), mostOwed)
	r.bytes += (2*float64(used) - r.bytes) * min(float64(now-r.at)/float64(reserveTime), 1)
	r.used, r.at = 0, now
}
