package netcode

import (
	"errors"
	"net/netip"
	"strings"
)

// ErrAddr is a text that is no address.
var ErrAddr = errors.New("netcode: not an address like 1.2.3.4:40000 or [2001:db8::1]:40000")

// ParseAddr reads an address as tokens have it: IPv4 or IPv6 by number, with or without a port;
// without one the port is 0.
func ParseAddr(s string) (netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil && ap.Addr().Zone() == "" {
		return ap, nil
	}
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	a, err := netip.ParseAddr(bare)
	if err != nil || a.Zone() != "" {
		return netip.AddrPort{}, ErrAddr
	}
	return netip.AddrPortFrom(a, 0), nil
}

// unmap gives IPv4 addresses one form, whatever socket or token they come from, and leaves out which interface a link-local address is of,
// which tokens don't say.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
