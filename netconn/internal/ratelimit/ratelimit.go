// Package ratelimit bounds how often the networks of strangers may ask for something.
package ratelimit

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// Limiter bounds requests by the networks that they come from, and by a second measure all that were let through. Safe for concurrent use.
//
// It reads the clock under its lock, so that times come in order however requests overtake each other: going back and forth between two
// times would fill the buckets each time.
type Limiter struct {
	now      func() time.Time
	mu       sync.Mutex
	rate     float64
	burst    int
	max      int
	all      bucket
	byPrefix map[netip.Prefix]*list.Element
	order    *list.List // of *visitor, heard last in front
}

type visitor struct {
	from   netip.Prefix
	bucket bucket
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
// multiple of the rate. It remembers maxAddrs networks, at least [Scopes]. now is called by many goroutines at once.
func New(now func() time.Time, rate float64, burst, maxAddrs int, all float64) *Limiter {
	return &Limiter{now: now, rate: rate, burst: burst, max: maxAddrs, all: newBucket(all, max(1, all)),
		byPrefix: map[netip.Prefix]*list.Element{}, order: list.New()}
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

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// origin is the address that a request comes from: of an IPv6 address that holds an IPv4 address, the latter.
func origin(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// Len is how many networks it remembers.
func (l *Limiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order.Len()
}

// Allow reports whether a request is within the limits of all networks that it comes from. One that isn't takes nothing of
// any of them, so that a network isn't closed by a member that asks too often.
func (l *Limiter) Allow(from netip.Addr) bool {
	from = origin(from)
	scopes := scopes6
	if from.Is4() {
		scopes = scopes4
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var buckets [Scopes]*bucket
	for i, s := range scopes { // a network at its limit adds nothing narrower to the table
		p, _ := from.Prefix(s.bits) // an address has those bits
		buckets[i] = l.bucket(p, s.times)
		if !buckets[i].ready(now) {
			return false
		}
	}
	for _, b := range buckets[:len(scopes)] {
		b.take(now)
	}
	return true
}

// AllowTotal reports whether one more request is within the limit of all.
func (l *Limiter) AllowTotal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.take(l.now())
}

func (l *Limiter) bucket(from netip.Prefix, times int) *bucket {
	if e := l.byPrefix[from]; e != nil {
		l.order.MoveToFront(e)
		return &e.Value.(*visitor).bucket
	}
	if l.order.Len() == l.max {
		oldest := l.order.Back()
		delete(l.byPrefix, oldest.Value.(*visitor).from)
		l.order.Remove(oldest)
	}
	v := &visitor{from, newBucket(l.rate*float64(times), float64(l.burst)*float64(times))}
	l.byPrefix[from] = l.order.PushFront(v)
	return &v.bucket
}
