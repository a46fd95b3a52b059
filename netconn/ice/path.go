package ice

import (
	"encoding/binary"
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
	return a.IsValid() && a.Port() >= firstPort && oneMachine(a.Addr(), loopback)
}

// oneMachine reports whether an address is one machine's of a network or the internet, or of this one if loopback.
func oneMachine(ip netip.Addr, loopback bool) bool {
	switch {
	case ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || ip.Zone() != "":
		return false
	case ip.IsLoopback():
		return loopback
	}
	return ip != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// broadcast reports whether an address stands for all machines of a network that this one is in.
func broadcast(ip netip.Addr) bool {
	if !ip.Is4() {
		return false
	}
	for _, p := range networks() {
		if !p.Addr().Is4() || p.Bits() > 30 || !p.Contains(ip) { // two machines of a /31 have its two addresses
			continue
		}
		b := ip.As4()
		hosts := uint32(1)<<(32-p.Bits()) - 1
		if n := binary.BigEndian.Uint32(b[:]) & hosts; n == 0 || n == hosts {
			return true
		}
	}
	return false
}

// firstPort is the lowest port that checks go to: those below are of DNS, NTP and other services that somebody might want to have flooded.
const firstPort = 1024
