package web

import (
	"net/netip"
	"strconv"
	"strings"
)

// Way is the transport that carries a peer's datagrams.
type Way uint8

// The ways, the best first. UDP and WebTransport lose single datagrams. With WebSocket a lost packet delays all that follow it.
const (
	UDP Way = iota + 1
	WebTransport
	WebSocket
)

// String returns the way's name. The zones of its peers' addresses begin with it, except for UDP, which has no zone.
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

// WayOf returns the way of a peer's address.
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
