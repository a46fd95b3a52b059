// Package message carries typed messages over packets that get lost: reliable and
// in order, unreliable, or newest-wins. Large blocks of data go in fragments
// beside them.
//
// A message has one method that writes, reads and measures it:
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
// A channel's own reliable bunches ([channel.Channel.SendBunch]) are sent again as they
// were, in whole packets' worth, and speak Unreal's wire. Messages are sent again one by one
// until they are acked, older first, in whatever room a packet has; they suit many small
// things under loss, and need only packet acks: they ride a channel's unreliable bunches
// ([Attach]), and equally packetnotify/ackbits, by calling Write, Sent, Acked and Read.
//
// # The caller's loop
//
//	q.Send(kind, m)                        // ErrFull, ErrTooLarge before anything is queued
//	n := q.Write(now, w)                   // at the start of a packet: as many as fit and are due
//	q.Sent(packetID)                       // it left
//	q.Acked(packetID) or q.Lost(packetID)  // what became of it
//	q.Read(r)                              // at the other end
//	for m, kind := q.Receive(); m != nil; m, kind = q.Receive() { ... }
//
// # On the wire
//
//	Int(65)     messages in the packet, at most 64
//	16          id of the first (Ordered, Sequenced)
//	per message
//	  1         the id is the last one plus 1 (Ordered, from the second on)
//	  16        id otherwise
//	  Int(k)    kind, k the number of kinds
//	  ...       the message
//
// # Bounds
//
//	messages queued to send, or received before their turn   Config.Window, 1024; Send returns ErrFull
//	a message                                                Config.MaxBits, 6000; Send returns ErrTooLarge
//	messages in a packet                                     64, and Config.Budget bits
//	blocks at a time, bytes of a block                       4 and 64 MiB
package message
