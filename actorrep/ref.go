package actorrep

import "github.com/bunchnet/bunchnet/actorrep/netguid"

// Ref is a reference to an actor of type T, a pointer to an actor's struct. It may be a replicated field, also within
// structs and slices, and a parameter of an RPC. On the wire it is a netguid.GUID.
//
//	Target actorrep.Ref[*Soldier] `net:"notify=OnTarget"`
//	...
//	s.Target = actorrep.RefTo(other)                      // on the server
//	if t := s.Target.In(s.World()); t != nil { ... }      // anywhere
//
// The zero Ref refers to nothing. Refs to the same actor are equal. A Ref field's notify is called when the field refers
// to another actor, and each time the actor that it refers to appears on the client. So is that of a slice or fast array with
// Refs, and a fast array's OnChange is called for the elements that refer to the actor.
type Ref[T Actor] struct{ id netguid.GUID }

// RefTo returns a reference to a spawned actor. For nil, or an actor that isn't spawned, it is the zero Ref.
func RefTo[T Actor](a T) Ref[T] {
	var none T
	if any(a) == any(none) {
		return Ref[T]{}
	}
	return Ref[T]{a.base().guid}
}

// In returns the actor in a world; nil when it isn't there or has another type, or w is nil, as that of an actor that is gone.
func (r Ref[T]) In(w *World) (a T) {
	if w == nil {
		return a
	}
	if b := w.byGUID[r.id]; b != nil {
		a, _ = b.self.(T)
	}
	return a
}

// GUID is the id of the actor; 0 for none.
func (r Ref[T]) GUID() netguid.GUID { return r.id }

// RefersNet marks the type as a reference, for package layout.
func (Ref[T]) RefersNet() {}
