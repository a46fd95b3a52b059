// Package channel carries bunches between the two ends of a connection: many
// ordered streams, each with its own reliable sequence, over packets that get lost.
//
// A [Table] holds the channels of one connection. It owns no packets: what it
// wants sent it hands to its [Conn], and the connection tells it which packets
// arrived. Package netconn is that connection.
//
// # The life of a channel
//
//	         Open                    first bunch sent          its packets acked
//	(none) --------> opening (local) ---------------> sent ----------------------> OpenAcked
//	  |                                                                               |
//	  | a bunch with Open arrives (remote; OpenAcked at once)                         | Close
//	  +--------------------------------------------------------------------+          v
//	                                                                       |       closing
//	         removed; the index is free  <------ close bunch acked --------|----------+
//	         removed; the index is free  <------ close bunch received -----+
//
// Only the end that opened a channel may close it; channel 0 either may, and its
// end is the connection's end. A closing channel ignores what still arrives.
//
// # Reliability
//
// Each reliable bunch takes the next ChSequence of its channel index and a place in
// OutRec, at most [Config.ReliableBuffer] of them, until a packet with it is
// acked. When the last packet that carries it is naked, the same bunch under the
// same ChSequence goes into a new packet. The receiver releases reliable bunches
// in order from InRec and drops what it had. Sequences belong to the index and
// go on when the index is used again, so a late duplicate can't be mistaken; where a closed channel
// left bunches unacked, the next one of its index sends empty ones in their place.
//
// Unreliable bunches are sent once. They are dropped on a channel that isn't open yet.
//
// # Merging
//
// A bunch that follows another of the same channel and reliability in the same
// packet is merged into it, and the receiver gets both payloads as one. So a
// payload must say where it ends, as Unreal's control messages and content blocks
// do; a sender that wants its bunches apart sets NoMerge.
//
// # Bounds
//
//	reliable bunches not acked, a channel     256 (ReliableBuffer); SendBunch returns ErrReliableFull
//	                                          before anything is queued, or closes (CloseOnOverflow)
//	reliable bunches received out of order    256 a channel; more is an error of the peer
//	a payload                                 65536 bytes
//	channels                                  32767 (MaxChannels)
//	queued control bunches                    32768 and 4 MiB, then an error
package channel
