// Package largeworld is R1, the scenario by which the replication of large worlds is measured: a server with many connections and many
// more actors, of which each connection sees a part. It is all in one process, in memory and in virtual time; the clients
// are connections that ack and do nothing with what they get, so that what is measured is the server.
//
//	c, err := largeworld.New(largeworld.R1)
//	...
//	f := c.Measure(20, 100, func() { c.Change(500) })
//
// Actors are of one class with two places, a health and a state, spread evenly; connections stand on circles. The same
// Config makes the same world.
package largeworld
