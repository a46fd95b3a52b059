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
	UDP Way = iota + 1
	WebTransport
	WebSocket
)

// String is the way's name, which the zone of its peers' addresses begins with.
func (w Way) String() string {
	switch w {
	case UDP:
		return "udp"
	case WebTransport:
		return "webtransport"
	case WebSocket:
		return "websocket"
	}
	return "Way(" + strconv.Itoa(int(w)) + ")"
}

// WayOf is the way of a peer's address.
func WayOf(addr netip.AddrPort) Way {
	zone := addr.Addr().Zone()
	if zone == "" {
		return UDP
	}
	name, _, _ := strings.Cut(zone, ".")
	for _, w := range []Way{WebTransport, WebSocket} {
		if name == w.String() {
			return w
		}
	}
	return UDP
}
