// Package actorrep replicates actors: a server's objects appear, change and
// disappear on its clients (Unreal's actor channels and object replicators).
//
// An actor is a pointer to a struct that embeds [Base] and tags its replicated fields
// (package layout). A [World] holds them, the same type at both ends:
//
//	world := actorrep.NewServer(actorrep.Config{})
//	world.Register("Ship", (*Ship)(nil))
//	channels := []channel.Type{world.ChannelType()}
//	... on a connection's join: peer := world.AddConn(conn.Table())
//	world.Spawn(&Ship{Armor: 100})
//	each tick, between TickDispatch and TickFlush: world.Step(now)
//
// # An actor's life over the wire
//
//	server                                          client
//	  | opens a channel: Open, guid, class, values -->  | spawns it, calls Spawned
//	  | unreliable bunch: changed values           -->  | sets them, calls notifies
//	  |   (a nak makes the values of that packet dirty again: what is sent then is
//	  |    their value then)
//	  | closes the channel, with the reason        -->  | calls Destroyed
//
//	bits       field of the opening bunch
//	IntPacked  guid
//	IntPacked  class id, by order of registration
//	32         layout hash: both ends must have the same class
//	...        values (package layout)
//
// # What is sent to whom
//
// Each tick every actor is compared with its shadow once, whatever the number of
// connections. Its changes go into a ring of the last 64; each connection remembers how
// far it has come, what is in flight in which packets, and what was lost. A connection
// that falls behind the ring is told everything.
//
// Values are sent only to whom their conditions allow; what isn't allowed now is kept and sent when
// it is, as after a change of owner. Actors that find the connection's bandwidth used up go first in the
// next tick.
//
// # Order
//
// On a client all values of a bunch are set, then its notifies are called in order of
// declaration. Between bunches of different actors there is no order. References may name an
// actor that hasn't come yet: look it up when it is needed.
//
// # Not there yet
//
// RPCs, sub-objects, dynamic arrays, dormancy and the replication graph; see the CHANGELOG.
package actorrep
