// Package hostile has a server and a client of actor replication that lie, to test the end that they talk to. They speak the
// protocol, so their messages pass the first checks, which random bytes don't. Then they say what no honest end would.
//
//	dice := hostile.NewDice(hostile.Bytes(seed, 2000), 16)
//	server, err := hostile.NewServer(dice, classes...)      // those of the victim, in the order of its schema
//	data, bits := server.Opening(channel)                   // to be sent as a bunch on that channel
//
// [Dice] decide what a liar says, from a seed or a fuzzer's bytes. Some messages have a wrong class; an id, a frame or a length at or
// beyond its bound; are cut short or lengthened; or have a flipped bit. The others are well formed, but come at a time when no honest
// end would send them.
//
// The caller checks for damage: memory written outside an actor's fields, an actor of another class than its channel's, the end of
// somebody else's connection.
package hostile
