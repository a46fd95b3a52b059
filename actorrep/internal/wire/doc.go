// Package wire is the form in which the ends of actor replication talk: heads of openings and records, and kinds of messages. Values and
// the descriptions of classes are package layout's. What is written here is read here; who may say what, and when, is package actorrep's.
package wire

// Messages on an actor's channel after its opening bunch, any number in a bunch.
const (
	Props    = iota // 32 frame | a bit a unit | values
	Call            // from a server 32 frame; then the call
	Role            // 1 owner | 1 autonomous
	TornOff         // nothing
	KindBits = 2    // of a message's kind, here and on the replication channel
)

// Messages of the server on the replication channel, reliable ones.
const (
	Schema = iota
	Gone   // IntPacked guid | 32 frame
	Torn   // the same: an actor that sleeps is the client's own now
	// Refused: reliable calls of the client didn't run. IntPacked guid, 0 for calls of several actors and reasons, which has a count
	// only | IntPacked procedure | 2 why | IntPacked how many
	Refused
)
