package netconn

import "time"

// reserve is what copies leave of the bandwidth: as much as the game has used in one of its last ticks. They would take what it wants in its next tick otherwise.
type reserve struct {
	used  int           // bytes of packets with bunches since the last tick, without copies
	bytes int           // the most that the game has used in a tick, which falls with time
	owed  int           // bytes that copies may take although the game uses all
	at    time.Duration // of the last tick
}

const (
	reserveTime = 250 * time.Millisecond // without use the reserve falls to 1/e of itself in this time
	owedPart    = 16                     // copies get one byte of so many when the game uses all
	mostOwed    = 1500                   // a packet
)

// leaves reports whether copies may take bytes of a budget.
func (r *reserve) leaves(budget, bytes int) bool {
	return budget > 0 && (budget-bytes >= r.bytes || r.owed >= bytes)
}

// took notes that they do.
func (r *reserve) took(budget, bytes int) {
	if budget-bytes < r.bytes {
		r.owed -= bytes
	}
}

// tick ends a tick, in which who sends what the game leaves took later bytes. all says that the game left nothing.
func (r *reserve) tick(now time.Duration, later int, all bool) {
	used := max(0, r.used-later)
	if all {
		r.owed = min(r.owed+used/owedPart, mostOwed)
	}
	falls := min(float64(now-r.at)/float64(reserveTime), 1)
	r.bytes = max(used, r.bytes-int(falls*float64(r.bytes)))
	r.used, r.at = 0, now
}
