// Package ackbits tells you which of your packets arrived, with a plain header of
// eight bytes: a sequence, the newest sequence received, and 32 bits about that one
// and the 31 before it. Each ack is repeated in 32 packets, so that hardly
// any is lost with the packets that carry it.
//
// It doesn't resend, keep payloads, open connections or check integrity. Give it only
// packets of the peer: package netconn/netcode or netconn/salted below it verifies that.
// The caller decides what to do about a lost packet.
//
// # Header
//
// Version 1, little-endian, 8 bytes; the payload follows:
//
//	byte 0        2        4                 8
//	     +--------+--------+-----------------+---------
//	     | seq 16 | ack 16 |   ack_bits 32   | payload
//	     +--------+--------+-----------------+---------
//
//	ack_bits   bit 31  ...   bit 2   bit 1   bit 0
//	packet     ack-31  ...   ack-2   ack-1   ack       1: received
//
//	seq       sequence of this packet; the first of each end is 0
//	ack       the newest sequence received; 0xffff before there is any
//	ack_bits  bit n set: packet ack-n was received; 0 before there is any
//
// Sequences wrap at 65536. In memory they are int64 ids, which don't wrap. A number on
// the wire stands for the id nearest to the newest known one. So when 32768 packets
// in a row are lost, an end misreads all later ones. The connection below has timed out
// long before.
//
// # Fates
//
//	          ack in time
//	sent ---------------------------> acked
//	  |  LossAfter passed, or the        ^
//	  |  window moved on                 |  ack after all, while in the window
//	  +----------------------> lost -----+
//
// PacketAcked is called at most once for an id, and so is PacketLost. PacketLost is
// never called after PacketAcked. The ids that one received packet acks come in rising
// order. PacketAcked may follow PacketLost, when the ack comes late: the caller can then
// cancel a resend.
//
// # The caller's loop
//
//	packet, id := e.Send(now, buf[:0], len(payload)) // remember what id carries
//	socket.Write(append(packet, payload...))
//	...
//	payload, id, err := e.Receive(now, packet) // calls PacketAcked; err: drop it
//	...
//	e.Tick(now) // now and then: calls PacketLost, moves the bandwidth averages
//
// # Choosing
//
// Package packetnotify does the same for Unreal's wire: it has 256 packets of history, each packet has
// exactly one fate, in order, and its header is in bits. Choose ackbits for a small fixed header, for a
// high packet rate at which a late packet is useless, or below package channel/message without channels.
//
// # Bounds
//
//	packets whose fate is remembered   Window, 256; older ones count as lost
//	received packets remembered        Window, 256; older ones are refused as stale
package ackbits
