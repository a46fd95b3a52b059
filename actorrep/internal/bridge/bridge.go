// Package bridge hands what packages of this module need of package actorrep, and games don't, from that one to these: actorrep's init sets
// each variable to a function of the type that is written beside it.
package bridge

import "github.com/bunchnet/bunchnet/actorrep/layout"

var (
	// BaseOf is the Base of an actor whose type isn't known.
	BaseOf any // func(a actorrep.Actor) *actorrep.Base
	// DriverIndex is the number that a world's ReplicationDriver gave an actor, for its tables; 0 when it gave none, or the actor
	// was destroyed. SetDriverIndex gives it.
	DriverIndex    any // func(a actorrep.Actor) int
	SetDriverIndex any // func(a actorrep.Actor, i int)
	// BeforeValues has f called on a client right before values that came for an actor are set: what shows something else in the actor's
	// fields puts the server's values back.
	BeforeValues any // func(w *actorrep.World, f func(a actorrep.Actor))
	// Classes is the registered classes of a world.
	Classes any // func(w *actorrep.World) []Class
)

// Class is a registered class.
type Class struct {
	Name       string
	Layout     *layout.Layout
	Procedures []Procedure
}

// Procedure is one of a class.
type Procedure struct {
	Name, Kind string
	Reliable   bool
	Parameters *layout.Layout
}
