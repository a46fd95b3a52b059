package ice

import (
	"fmt"
	"net/netip"
)

// Path is how datagrams go between the two players.
type Path uint8

// The paths, the best first.
const (
	NoPath  Path = iota // not found yet, or lost
	Direct              // nothing changes the addresses: in one network, or both on the internet
	Routed              // through the router of one or both
	ByRelay             // through a relay (TURN)
)

// String returns the path in words.
func (p Path) String() string {
	switch p {
	case NoPath:
		return "none"
	case Direct:
		return "direct"
	case Routed:
		return "through the router"
	case ByRelay:
		return "relayed"
	}
	return fmt.Sprintf("Path(%d)", uint8(p))
}

// acceptable reports whether an address may be sent checks: a port of programs, not of the system's services, at one machine of a network or the internet.
func acceptable(a netip.AddrPort, loopback bool) bool {
	ip := a.Addr()
	switch {
	case !a.IsValid() || a.Port() < firstPort || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || ip.Zone() != "":
		return false
	case ip.IsLoopback():
		return loopback
	}
	return ip != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// firstPort is the lowest port that checks go to: those below are of DNS, NTP and other services that somebody might want to have flooded.
const firstPort = 1024
