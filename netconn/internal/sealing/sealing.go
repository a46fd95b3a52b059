// Package sealing is what a machine that encrypts packets and the driver say to each other, so that the driver encrypts a tick's packets on
// several cores.
package sealing

import "net/netip"

// Sealer encrypts packets. Its calls may be made at the same time.
type Sealer interface {
	// Seal encrypts and authenticates p in place and returns it with its tag, for which p has Overhead bytes of capacity. What it does depends on the
	// key and p alone.
	Seal(p []byte, room *Room) []byte
}

// Overhead is what Seal adds to a packet.
const Overhead = 16

// Room is memory of one call of Seal at a time, so that it doesn't allocate.
type Room [40]byte

// Sender is a handler of a machine that seals the machine's packets itself.
type Sender interface {
	// SendUnsealed sends p, which s seals before that, in the order of the calls. p is valid until it returns.
	SendUnsealed(to netip.AddrPort, p []byte, s Sealer)
}
