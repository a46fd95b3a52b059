package actorrep

import "github.com/bunchnet/bunchnet/actorrep/netguid"

// Ref is a reference to an actor of type T, a pointer to a struct with Base. It may be a replicated field, within structs and
// slices, and a parameter of an RPC. On the wire it is a netguid.GUID.
//
//	Target actorrep.Ref[*Soldier] `net:"notify=OnTarget"`
//	...
//	s.Target = actorrep.RefTo(other)                      // on the server
//	if t := s.Target.In(s.World()); t != nil { ... }      // anywhere
//
// The zero Ref refers to nothing. Refs to the same actor are equal. The notify of a field is called when it refers to another actor,
// and whenever the actor that it refers to comes to the client, for the first time or again.
type Ref[T Actor] struct{ id netguid.GUID }

// RefTo returns a reference to a spawned actor. One to nil, or to an actor that isn't spawned, refers to nothing.
func RefTo[T Actor](a T) Ref[T] {
	var none T
	if any(a) == any(none) {
		return Ref[T]{}
	}
	return Ref[T]{a.base().guid}
}

// In is the actor in a world; nil when it isn't there, not yet or not any more, or is of another type.
func (r Ref[T]) In(w *World) (a T) {
	if b := w.byGUID[r.id]; b != nil {
		a, _ = b.self.(T)
	}
	return a
}

// GUID is the id of the actor; 0 for none.
func (r Ref[T]) GUID() netguid.GUID { return r.id }

// RefersNet makes package layout see the id inside.
func (Ref[T]) RefersNet() {}
