// Package netguid names actors across the network (Unreal's FNetworkGUID).
//
//	31                    1 0
//	+----------------------+-+
//	|       counter        |s|   s = 1: static, the same in every process
//	+----------------------+-+   s = 0: dynamic, given by the server
//
// 0 names nothing. On the wire it is a packed int. Only the server gives ids; a
// client keeps what it is told.
package netguid

import "fmt"

// GUID names an actor, or nothing when 0. A field of this type in a replicated struct is a
// reference to another actor.
type GUID uint32

// IsStatic reports whether the id is the same in every process.
func (g GUID) IsStatic() bool { return g&1 != 0 }

// Valid reports whether the id names something.
func (g GUID) Valid() bool { return g > 1 }

// String is the id with its kind.
func (g GUID) String() string {
	switch {
	case !g.Valid():
		return "none"
	case g.IsStatic():
		return fmt.Sprintf("static %d", uint32(g>>1))
	}
	return fmt.Sprintf("actor %d", uint32(g>>1))
}

// MaxServers is the most servers among which ids are divided.
const MaxServers = 1024

// Share is the dynamic ids that one of several servers gives, so that no two give the same: those whose counter is Server
// modulo Servers. Server is 0 to Servers-1, and Servers at most MaxServers. The zero Share is all ids.
type Share struct{ Server, Servers uint32 }

// Valid reports whether Server and Servers are in range.
func (s Share) Valid() bool { return s == Share{} || s.Server < s.Servers && s.Servers <= MaxServers }

// Allocator gives the dynamic ids of a Share. The zero Allocator is ready.
type Allocator struct {
	last  uint32
	Share Share
}

// Next is an id that was never given before. After all ids of the share, 2^31-1 of the zero Share, they come again from the
// first: who has actors that are older asks until he gets one that none of them has.
func (a *Allocator) Next() GUID {
	step := max(a.Share.Servers, 1)
	if a.last == 0 || a.last > 1<<31-1-step { // begin, or begin again
		a.last = 0
		if a.Share.Server > 0 {
			step = a.Share.Server
		}
	}
	a.last += step
	return GUID(a.last << 1)
}
