package web

import (
	"net/netip"
	"strconv"
	"strings"
)

// Way is how datagrams of a peer come.
type Way uint8

// The ways, the best first: WebTransport loses a datagram by itself, as UDP does; a WebSocket holds up all that follow a lost one.
const (
	WebTransport Way = iota + 1
	WebSocket
)

// String is the way's name, which is the zone of its peers' addresses.
func (w Way) String() string {
	switch w {
	case WebTransport:
		return "webtransport"
	case WebSocket:
		return "websocket"
	}
	return "Way(" + strconv.Itoa(int(w)) + ")"
}

// WayOf is the way of a peer's address; ok is false for an address of UDP.
func WayOf(addr netip.AddrPort) (w Way, ok bool) {
	zone := addr.Addr().Zone()
	if zone == "" {
		return 0, false
	}
	name, _, _ := strings.Cut(zone, ".")
	for _, w := range []Way{WebTransport, WebSocket} {
		if name == w.String() {
			return w, true
		}
	}
	return 0, false
}

// addrOf is the address of the n-th peer, from 1, with one remote address and way: the remote one in the form of IPv6, with the way in its zone. So it
// is no UDP peer's, and what limits peers by their addresses sees the remote one.
func addrOf(w Way, remote netip.AddrPort, n int) netip.AddrPort {
	zone := w.String()
	if n > 1 {
		zone += "." + strconv.Itoa(n)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(remote.Addr().As16()).WithZone(zone), remote.Port())
}
