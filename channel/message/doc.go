// Package message carries typed messages over packets that may be lost: reliable and in order, unreliable, or unreliable with older ones
// dropped. Large blocks of data are sent in fragments beside them.
//
// A message has one method, which writes, reads and measures it:
//
//	type Move struct{ X, Y int32; Name string }
//
//	func (m *Move) Serialize(s *message.Stream) {
//		s.Int(&m.X, -1000, 1000)
//		s.Int(&m.Y, -1000, 1000)
//		s.String(&m.Name, 20)
//	}
//
// # When to choose it
//
// A channel's own reliable bunches ([channel.Channel.SendBunch]) are sent again as they were, as large as a packet, in Unreal's wire
// format. Messages are sent again one by one until they are acked, older ones first, in the spare room of packets. They suit many small
// items under loss. They need only packet acks: use them in a channel's unreliable bunches ([Attach]), or with packetnotify/ackbits by
// calling Write, Sent, Acked and Read.
//
// # The caller's loop
//
//	q.Send(kind, m)                        // a copy; ErrFull, ErrTooLarge before anything is queued
//	n := q.Write(now, w)                   // at the start of a packet: as many as fit and are due
//	q.Sent(packetID)                       // it left, or q.NotSent()
//	q.Acked(packetID) or q.Lost(packetID)  // what became of it
//	q.Read(r)                              // at the other end
//	for m, kind := q.Receive(); m != nil; m, kind = q.Receive() { ... }
//
// Both ends make all these calls, even if one only receives: an Ordered queue tells its peer how many messages it has room for, and the
// peer sends no more. So a game that receives slowly, or has no memory left, slows down its peer's queue, until Send there returns ErrFull. A queue on a
// channel ([Attach]) does this by itself.
//
// A loop that sleeps until the connection's NextDeadline wakes at the game's own rate as long as messages are Pending or blocks under way, and ticks queues and connection: the
// connection doesn't know of what waits in them for bandwidth, for its Resend or for a turn.
//
// A message is encoded once, at Send. For a broadcast call [Kind.Encode], and pass the result to each queue with SendEncoded. In
// Unordered queues [Kind.Slack] lets more urgent kinds go first. In Ordered ones older messages go first, but smaller ones fill the
// rest of a packet.
//
// # On the wire
//
//	1           credit follows (Ordered)
//	  16        id of the first message that may not be sent yet
//	Int(65)     messages in the packet, at most 64
//	16 or 32    id of the first (Ordered 16, Sequenced 32)
//	per message
//	  1         the id is the last one plus 1 (Ordered, from the second on)
//	  16        id otherwise
//	  Int(k)    kind, k the number of kinds
//	  ...       the message, with zeros up to 8 bits when it has less
//
// # Bounds
//
//	messages queued to send                        Config.Window, 1024; Send returns ErrFull
//	messages received, not yet returned by Receive Config.Window: Ordered, the peer waits; Sequenced, the oldest is
//	                                               dropped; Unordered, the newest; Counters.Dropped counts them
//	a message                                      Config.MaxBits, 6000; Send returns ErrTooLarge, Read ErrFormat
//	messages in a packet                           64, and Config.Budget bits
//	bytes held                                     Queue.Held; at most 2 * Window * MaxBits / 8
//	bytes received, on a channel (Attach)          channel.Channel.MaxHold less an eighth, 32 KiB at most, which are for channels that open and for bunches
//	                                               behind a lost one; each message counts 128 bytes more than its size. A queue takes three quarters of what
//	                                               others leave at most, so n full ones leave 1/4^n of it. Beyond that Ordered: the
//	                                               message's packet counts as lost, and the message is sent again, as Counters.Refused says;
//	                                               others: as beyond Window. A queue without messages has room for one, whatever others hold
//	packets with messages or fragments in flight   8192, and what remembers them counts within MaxMemory, in the half for what isn't acked; beyond that more wait
//	blocks at a time, bytes of a block             4 and 64 MiB, told to the peer; Send returns ErrBlocks, ErrBlockBig
//	a fragment of a block                          896 bytes. Where packets are smaller it is in several, and is lost with any of them: with four, at 30 %
//	                                               loss, one in four arrives, so a block takes four times its bytes
//	bytes of blocks being received                 BlocksConfig.MaxHeld, within the connection's MaxMemory; Blocks.Held
//
// # What differs from the articles, and why
//
//	the article says                              here                                      why
//	messages are sent again every 100 ms until    when acks take longer than they did, at    otherwise copies are sent without loss: five
//	  their packet is acked                       once when the packet is known to be lost   at a round trip of half a second
//	the receiver keeps a window; messages beyond  the receiver tells how far its window      a slow game isn't an attack
//	  it end the connection                       reaches, and the sender keeps to it
//	a packet takes messages until one doesn't     smaller ones behind it fill the packet     a packet has 1 of 12 messages otherwise
//	  fit
//	ids have 16 bits                              Sequenced has 32                           32768 lost in a row would drop as many more
//	a message is serialised for each packet       once, at Send                              one object in two queues, broadcasts
//	blocks stop everything else, one at a time    several at a time on their own channel,    a level doesn't hold up the game
//	                                              beside messages, which have what they need first
//	fragments of 1024 bytes, acked one by one,    896, acked with their packets, sent again   one of each fits a packet; the connection
//	  sent again by timers                        when those are lost                        knows of the loss
//	the last fragment's ack ends a block          the receiver says that it is whole         acks don't say that it was kept
package message
