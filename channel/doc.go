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
// OutRec, which has fewer than [Config.ReliableBuffer], until a packet with it is
// acked. When the last packet that carries it is naked, the same bunch under the
// same ChSequence goes into a new packet. It is sent as soon as the connection's bandwidth allows, oldest
// first and before bunches that were never sent; what was lost of a channel whose open isn't acked yet, which the peer may be
// refusing, takes turns with those. The receiver releases reliable bunches
// in order from InRec and drops what it had. Sequences belong to the index and
// go on when the index is used again, so a late duplicate can't be mistaken; where a closed channel
// left bunches unacked, the next one of its index sends empty ones in their place.
//
// SendBunch takes a reliable bunch while there is room in OutRec, also when the connection is above its bandwidth. Then the
// bunch waits, merged with small ones before it, until the bandwidth allows it.
//
// Unreliable bunches are sent once and at once. A receiver that doesn't have the channel yet refuses their packet: it counts
// as lost, and its reliable bunches come again.
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
//	reliable bunches not acked, a channel     ReliableBuffer less 1, and its close: 255 by default, 4094 with netconn.Bunchnet, 510
//	                                          with Unreal's 10 bits and a ReliableBuffer of 512. SendBunch returns ErrReliableFull before anything is queued; with CloseOnOverflow the
//	                                          connection ends, too
//	bytes of them, all channels               half of MaxMemory; then ErrReliableFull
//	reliable bunches received out of order    less than ReliableBuffer ahead of the next one, a channel; what is further
//	                                          ahead ends the connection with ErrSequenceAhead
//	bytes that the peer has this end hold     the other half of MaxMemory. Early bunches, opens and Hold have three quarters of it: what is beyond is
//	                                          refused, so that it comes again, and Hold returns ErrMemory to the handler. Parts of unfinished bunches may
//	                                          take the rest; when it is full, one payload goes on to its end, and the parts of others are refused
//	bytes of split payloads under way         1 MiB of those that began and aren't acked, 256 KiB at first, less when their parts are refused; other
//	                                          channels' wait in line, what is small doesn't
//	a payload                                 65536 bytes; SendBunch returns ErrTooLarge
//	channels                                  32767 (MaxChannels); Open returns ErrNoIndex
//	bunches queued on the control channel     32768 (MaxQueuedControl), within the same half of MaxMemory; then
//	                                          ErrControlQueueFull, and the connection ends
package channel
