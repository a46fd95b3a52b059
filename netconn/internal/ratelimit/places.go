package ratelimit

import (
	"math"
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
)

// Places counts what the networks of strangers have at once. An IPv4 address or IPv6 /64 may have so many, wider networks a multiple, as with a Limiter: who has one line of IPv6 has
// 256 or 65536 /64s. The loopback has no bound. Its table is as large as what it counts, times [Scopes]. Not safe for concurrent use.
type Places struct {
	most int
	n    map[netip.Prefix]int
}

// NewPlaces allows each address so many; a negative most allows all.
func NewPlaces(most int) *Places {
	return &Places{most: min(most, math.MaxInt/Wide24), n: map[netip.Prefix]int{}} // no multiple overflows
}

// Room reports whether all networks of an address may have one more.
func (p *Places) Room(a netip.Addr) bool {
	for network, most := range p.of(a) {
		if p.n[network] >= most {
			return false
		}
	}
	return true
}

// Add counts one more for an address.
func (p *Places) Add(a netip.Addr) {
	for network := range p.of(a) {
		p.n[network]++
	}
}

// Remove takes back one that was added.
func (p *Places) Remove(a netip.Addr) {
	for network := range p.of(a) {
		if p.n[network]--; p.n[network] <= 0 {
			delete(p.n, network)
		}
	}
}

// of passes the networks of an address on, and how many each may have.
func (p *Places) of(a netip.Addr) func(yield func(netip.Prefix, int) bool) {
	return func(yield func(netip.Prefix, int) bool) {
		if p.most < 0 || addrgroup.Origin(a).IsLoopback() {
			return
		}
		a, scopes := scopesOf(a)
		for _, s := range scopes {
			network, _ := a.Prefix(s.bits) // an address has those bits
			if !yield(network, p.most*s.times) {
				return
			}
		}
	}
}

// Wide returns the widest network of an address that has a limit of its own.
func Wide(a netip.Addr) netip.Prefix {
	a, scopes := scopesOf(a)
	p, _ := a.Prefix(scopes[0].bits) // an address has those bits
	return p
}
