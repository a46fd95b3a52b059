// Package addrgroup bounds what addresses of one place may have together.
package addrgroup

import "net/netip"

// groupBits is the prefix that one household or machine of IPv6 has, and can take any address of.
const groupBits = 64

// nat64 is the prefix of IPv4 addresses behind a translator (RFC 6052): the last four bytes are the address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Origin is the address that a stranger has: of an IPv6 address that holds an IPv4 address, the latter.
func Origin(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// Of is what an address counts as: an IPv4 address by itself, in whatever form, an IPv6 address by its /64. ok is false for the
// loopback, which isn't bounded: no stranger has it.
func Of(a netip.Addr) (group netip.Addr, ok bool) {
	a = Origin(a)
	if a.IsLoopback() {
		return a, false
	}
	if a.Is4() {
		return a, true
	}
	p, err := a.Prefix(groupBits)
	if err != nil {
		return a, true // no address at all
	}
	return p.Addr(), true
}

// Limit counts by group. Its table holds those that have something, so it is as large as what it bounds.
type Limit struct {
	max int // negative: no bound
	n   map[netip.Addr]int
}

// NewLimit allows each group so many; a negative max allows all.
func NewLimit(max int) Limit { return Limit{max: max, n: map[netip.Addr]int{}} }

// Room reports whether the group of an address may have one more.
func (l *Limit) Room(a netip.Addr) bool {
	if l.max < 0 {
		return true
	}
	g, ok := Of(a)
	return !ok || l.n[g] < l.max
}

// Add counts one more for an address.
func (l *Limit) Add(a netip.Addr) {
	if g, ok := Of(a); ok && l.max >= 0 {
		l.n[g]++
	}
}

// Remove takes back one that was added.
func (l *Limit) Remove(a netip.Addr) {
	g, ok := Of(a)
	if !ok || l.max < 0 {
		return
	}
	if l.n[g]--; l.n[g] <= 0 {
		delete(l.n, g)
	}
}
