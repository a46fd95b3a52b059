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

// Allocator gives dynamic ids. The zero Allocator is ready.
type Allocator struct{ last uint32 }

// Next is an id that was never given before. After 2^31-1 ids they come again from the first: who has actors that are older
// asks until he gets one that none of them has.
func (a *Allocator) Next() GUID {
	if a.last == 1<<31-1 {
		a.last = 0
	}
	a.last++
	return GUID(a.last << 1)
}
