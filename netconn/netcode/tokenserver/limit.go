package tokenserver

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limiter bounds requests by address and in all.
type limiter struct {
	mu    sync.Mutex
	rate  rate.Limit
	burst int
	max   int
	all   *rate.Limiter
	byIP  map[netip.Prefix]*list.Element
	order *list.List // of *visitor, heard last in front
}

type visitor struct {
	from   netip.Prefix
	bucket *rate.Limiter
}

func newLimiter(perAddr rate.Limit, burst, maxAddrs int, all rate.Limit) *limiter {
	return &limiter{rate: perAddr, burst: burst, max: maxAddrs, all: rate.NewLimiter(all, max(1, int(all))),
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
	return l.visitor(network(from)).bucket.AllowN(now, 1) && l.all.AllowN(now, 1)
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
	v := &visitor{from, rate.NewLimiter(l.rate, l.burst)}
	l.byIP[from] = l.order.PushFront(v)
	return v
}
