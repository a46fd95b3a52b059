// Package ratelimit bounds how often the networks of strangers, and players, may ask for something.
package ratelimit

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
)

// Limiter bounds requests by the networks that they come from, and those that were let through by the player who asks and in all. Safe for concurrent use.
//
// It reads the clock under its lock, so that times come in order however requests overtake each other: going back and forth between two
// times would fill the buckets each time.
type Limiter struct {
	now     func() time.Time
	mu      sync.Mutex
	rate    float64
	burst   int
	all     bucket
	origins table[netip.Prefix]
	players table[uint64]
}

// table is the buckets of those who were heard last, at most max of them.
type table[K comparable] struct {
	max   int
	byKey map[K]*list.Element
	order *list.List // of *visitor[K], heard last in front
}

type visitor[K comparable] struct {
	key    K
	bucket bucket
}

func newTable[K comparable](most int) table[K] {
	return table[K]{max: most, byKey: map[K]*list.Element{}, order: list.New()}
}

// bucket is that of key, which is a full one of its rate and size if key isn't remembered.
func (t *table[K]) bucket(key K, rate, size float64) *bucket {
	if e := t.byKey[key]; e != nil {
		t.order.MoveToFront(e)
		return &e.Value.(*visitor[K]).bucket
	}
	if t.order.Len() == t.max {
		oldest := t.order.Back()
		delete(t.byKey, oldest.Value.(*visitor[K]).key)
		t.order.Remove(oldest)
	}
	v := &visitor[K]{key, newBucket(rate, size)}
	t.byKey[key] = t.order.PushFront(v)
	return &v.bucket
}

// bucket fills at a rate a second up to its size; a request takes one.
type bucket struct {
	rate, size, level float64
	at                time.Time
}

func newBucket(rate, size float64) bucket { return bucket{rate: rate, size: size, level: size} }

// ready reports whether take would succeed.
func (b *bucket) ready(now time.Time) bool {
	if dt := now.Sub(b.at); dt > 0 && !b.at.IsZero() { // a clock that is set back gives nothing
		b.level = min(b.size, b.level+dt.Seconds()*b.rate)
	}
	b.at = now
	return b.level >= 1
}

func (b *bucket) take(now time.Time) bool {
	if !b.ready(now) {
		return false
	}
	b.level--
	return true
}

// New returns a limiter of rate requests a second from one IPv4 address or IPv6 /64, burst of them at once, and all a second in all. Wider networks have a
// multiple of the rate. It remembers maxAddrs networks, at least [Scopes], and as many players. now is called by many goroutines at once.
func New(now func() time.Time, rate float64, burst, maxAddrs int, all float64) *Limiter {
	return &Limiter{now: now, rate: rate, burst: burst, all: newBucket(all, max(1, all)),
		origins: newTable[netip.Prefix](maxAddrs), players: newTable[uint64](maxAddrs)}
}

// The wider networks: how many times the limit of one address, or of a /64, a network of many has.
const (
	Wide56 = 4  // IPv6 /56, what many providers give to one customer
	Wide48 = 16 // IPv6 /48, the most that one customer has
	Wide24 = 32 // IPv4 /24
)

// scope is a network that has a limit of its own.
type scope struct{ bits, times int }

var (
	scopes4 = []scope{{24, Wide24}, {32, 1}} // the widest first
	scopes6 = []scope{{48, Wide48}, {56, Wide56}, {64, 1}}
)

// Scopes is how many networks an address is of.
const Scopes = 3

// scopesOf returns the networks of an address, and the one that it counts as.
func scopesOf(a netip.Addr) (netip.Addr, []scope) {
	if a = addrgroup.Origin(a); a.Is4() {
		return a, scopes4
	}
	return a, scopes6
}

// Len is how many networks it remembers.
func (l *Limiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.origins.order.Len()
}

// Allow reports whether a request is within the limits of all networks that it comes from. One that isn't takes nothing of
// any of them, so that a network isn't closed by a member that asks too often.
func (l *Limiter) Allow(from netip.Addr) bool {
	from, scopes := scopesOf(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var buckets [Scopes]*bucket
	for i, s := range scopes { // a network at its limit adds nothing narrower to the table
		p, _ := from.Prefix(s.bits) // an address has those bits
		buckets[i] = l.origins.bucket(p, l.rate*float64(s.times), float64(l.burst)*float64(s.times))
		if !buckets[i].ready(now) {
			return false
		}
	}
	for _, b := range buckets[:len(scopes)] {
		b.take(now)
	}
	return true
}

// Ready reports whether Allow and AllowTotal would let a request through. It takes nothing, and remembers nobody.
func (l *Limiter) Ready(from netip.Addr) bool {
	from, scopes := scopesOf(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, s := range scopes {
		p, _ := from.Prefix(s.bits) // an address has those bits
		if e := l.origins.byKey[p]; e != nil && !e.Value.(*visitor[netip.Prefix]).bucket.ready(now) {
			return false
		}
	}
	return l.all.ready(now)
}

// AllowTotal reports whether one more request is within the limit of all.
func (l *Limiter) AllowTotal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.take(l.now())
}

// AllowPlayer reports whether one more request is within the limit of a player, which is that of one address, and of all. One that isn't takes nothing of
// either.
func (l *Limiter) AllowPlayer(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	player := l.players.bucket(id, l.rate, float64(l.burst))
	return player.ready(now) && l.all.take(now) && player.take(now)
}
