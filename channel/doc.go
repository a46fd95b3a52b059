// Package channel carries bunches between the two ends of a connection: many ordered streams, each with its own reliable
// sequence, over packets that may be lost.
//
// A [Table] holds the channels of one connection. It doesn't handle packets: it hands bunches to its [Conn], which says
// later which packets arrived. Package netconn is that connection.
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
// Only the end that opened a channel may close it. Either end may close channel 0, which ends the connection. A closing channel
// ignores what still arrives.
//
// # Reliability
//
// Each reliable bunch gets the next ChSequence of its channel index. It stays in OutRec, which holds fewer than
// [Config.ReliableBuffer], until a packet with it is acked. When the last packet that carries it is naked, the same bunch is sent again
// with the same ChSequence. It is sent as soon as the connection's bandwidth allows, oldest first and before bunches that were never
// sent. One exception: lost bunches of a channel that the peer may be refusing, for example because its open isn't acked yet, take
// turns with those.
//
// The receiver releases reliable bunches in order from InRec, and drops duplicates. Sequences belong to the index and continue when
// the index is used again, so a late duplicate is recognized. When a closed channel left bunches unacked, the index's next channel sends
// empty ones in their place.
//
// SendBunch accepts a reliable bunch while there is room in OutRec, even above the connection's bandwidth. The bunch then waits,
// merged with small ones before it, until the bandwidth allows it.
//
// When the connection is closed in order nothing more can be sent, except by a [Finisher].
//
// Unreliable bunches are sent once, at once. A receiver that doesn't have the channel yet refuses their packet: the packet counts as lost,
// and its reliable bunches are sent again. So until the channel's open is acked, each packet with unreliable bunches of the channel also
// carries a copy of the open. The copy is left out when the packet has no room for it, and when the open was split.
//
// SendBunch returns ErrNotSent for an unreliable bunch while the open waits to be sent, and after the loss of an open of which no copy can
// be sent along, until that open is acked.
//
// # Merging
//
// A bunch that follows another of the same channel and reliability in the same packet is merged with it, and the receiver gets both
// payloads as one. So a payload must mark its end, as Unreal's control messages and content blocks do. To keep a bunch
// separate, set NoMerge.
//
// # Bounds
//
//	unacked reliable bunches, a channel       ReliableBuffer less 1, and at most half of the ChSequences on the wire less 2:
//	                                          255 by default, 8190 with netconn.Bunchnet, 510 with Unreal's 10 bits and a
//	                                          ReliableBuffer of 512. A close may be added. Above it SendBunch queues nothing and returns
//	                                          ErrReliableFull; with CloseOnOverflow the connection ends
//	bytes of unacked reliable bunches               half of MaxMemory, with what handlers count by HoldSent; then ErrReliableFull, and
//	                                          HoldSent returns ErrMemory
//	reliable bunches received out of order    less than ReliableBuffer ahead of the next one, a channel; a bunch further
//	                                          ahead ends the connection with ErrSequenceAhead
//	bytes held for the peer                   the other half of MaxMemory. Early bunches, opens and Hold may take three quarters of
//	                                          it (MaxHold). Early bunches leave a quarter of MaxHold free; but an eighth of it, 48 KiB at most, has room if it
//	                                          leaves as much free. Beyond that bunches are refused, so that they are sent again, and Hold returns ErrMemory. An open needs 4.8 KB of it, for its handler. Parts of unfinished bunches may take the rest; when it is full, one
//	                                          payload continues, and parts of others are refused
//	unacked bytes of split payloads           1 MiB, 64 KiB at first, less when their parts are refused, and a quarter
//	                                          of PeerMemory, less what channels and the largest payload take there; split
//	                                          payloads of other channels wait in line, small ones don't
//	bytes sent behind lost bunches            what the peer has for early bunches by PeerMemory, as it counts them, over the
//	                                          channels that have lost bunches; more on these channels wait
//	a payload                                 65536 bytes; SendBunch returns ErrTooLarge
//	channels                                  32767 (MaxChannels); Open returns ErrNoIndex
//	bunches queued on the control channel     32768 (MaxQueuedControl), within the same half of MaxMemory; then
//	                                          ErrControlQueueFull, and the connection ends; of a payload of several
//	                                          parts that memory has no room for it is ErrReliableFull
package channel
