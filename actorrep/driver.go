package actorrep

// ChangeListener may be implemented by a ReplicationDriver that wants to know what may have moved, instead of
// asking every actor where it is.
type ChangeListener interface {
	// ActorChanged says that a Step found other values in an actor. It is called before Update; not for components, nor
	// for what isn't compared, as long as it isn't: dormant actors, and those that wait for their update frequency.
	ActorChanged(a Actor)
}

// BaseOf is the Base of an actor whose type isn't known.
func BaseOf(a Actor) *Base { return a.base() }

// DriverIndex is the number that a world's ReplicationDriver gave an actor, for its tables; 0 when it gave none.
func DriverIndex(a Actor) int { return int(a.base().driverIndex) }

// SetDriverIndex gives an actor that number. Only the driver of its world may. It is forgotten when the actor is
// destroyed.
func SetDriverIndex(a Actor, i int) { a.base().driverIndex = int32(i) }
