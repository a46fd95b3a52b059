// Package hostile is a server and a client of actor replication that lie, for tests of what they talk to: they speak the
// protocol, so that what they say passes the first checks, and say what no honest end would. Random bytes don't get that far.
//
//	dice := hostile.NewDice(hostile.Bytes(seed, 2000), 16)
//	server, err := hostile.NewServer(dice, classes...)      // those of the victim, in the order of its schema
//	data, bits := server.Opening(channel)                   // to be sent as a bunch on that channel
//
// What a liar says is decided by [Dice]: by a seed, or by a fuzzer. One message in some has another class, an id, a frame or a length at
// and beyond its bound, or is cut, lengthened or has a bit turned; the others are as an honest end would write them, at a time when it
// wouldn't.
//
// The harm is for the caller to look for: memory written behind an actor's fields, actors of other classes than their channel's, a
// connection of somebody else that ends.
package hostile
