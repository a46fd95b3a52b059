package tokenserver

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// limiter bounds requests by address and in all.
type limiter struct {
	mu    sync.Mutex
	rate  float64
	burst int
	max   int
	all   bucket
	byIP  map[netip.Prefix]*list.Element
	order *list.List // of *visitor, heard last in front
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

func newBucket(rate float64, size int) bucket {
	return bucket{rate: rate, size: float64(size), level: float64(size)}
}

func (b *bucket) take(now time.Time) bool {
	if dt := now.Sub(b.at); dt > 0 && !b.at.IsZero() { // a clock that is set back gives nothing
		b.level = min(b.size, b.level+dt.Seconds()*b.rate)
	}
	b.at = now
	if b.level < 1 {
		return false
	}
	b.level--
	return true
}

func newLimiter(perAddr float64, burst, maxAddrs int, all float64) *limiter {
	return &limiter{rate: perAddr, burst: burst, max: maxAddrs, all: newBucket(all, max(1, int(all))),
		byIP: map[netip.Prefix]*list.Element{}, order: list.New()}
}

// network is who shares a limit: an IPv4 address, or an IPv6 /64, which is what one customer has.
func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // a valid address has those bits
	return p
}

// allow reports whether a request is within its limits.
func (l *limiter) allow(now time.Time, from netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.visitor(network(from)).bucket.take(now) && l.all.take(now)
}

func (l *limiter) visitor(from netip.Prefix) *visitor {
	if e := l.byIP[from]; e != nil {
		l.order.MoveToFront(e)
		return e.Value.(*visitor)
	}
	if l.order.Len() == l.max {
		oldest := l.order.Back()
		delete(l.byIP, oldest.Value.(*visitor).from)
		l.order.Remove(oldest)
	}
	v := &visitor{from, newBucket(l.rate, l.burst)}
	l.byIP[from] = l.order.PushFront(v)
	return v
}
