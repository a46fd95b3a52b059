package netconn

import "time"

// reserve is what copies leave of the bandwidth: twice what the game uses in a tick. They would take what it wants in its next tick otherwise.
type reserve struct {
	used  int           // bytes of packets with bunches since the last tick, without copies
	bytes float64       // twice what the game uses in a tick, on average
	owed  int           // bytes that copies may take although the game uses all
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

// tick ends a tick, in which who sends what the game leaves took later bytes. all says that the game left nothing.
func (r *reserve) tick(now time.Duration, later int, all bool) {
	used := max(0, r.used-later)
	if all {
		r.owed = min(r.owed+used/owedPart, mostOwed)
	}
	r.bytes += (2*float64(used) - r.bytes) * min(float64(now-r.at)/float64(reserveTime), 1)
	r.used, r.at = 0, now
}
