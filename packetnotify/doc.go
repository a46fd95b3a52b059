// Package packetnotify tells you which of your packets arrived; what to do about
// the rest is the channels' business. It is Unreal's FNetPacketNotify: each packet
// carries its own sequence, the newest sequence received, and a bitfield about the
// 256 before that, so that one packet in any direction makes up for many lost acks.
//
// # Header
//
// Unreal 4.19 to 5.8, low bits first:
//
//	31              18 17               4 3          0
//	+-----------------+------------------+------------+
//	|     Seq 14      |   AckedSeq 14    | words-1  4 |
//	+-----------------+------------------+------------+
//	| history word 0: bit i = AckedSeq-i was delivered |
//	+--------------------------------------------------+
//	| ... word 7 at most                               |
//	+--------------------------------------------------+
//
// # Who knows what, when
//
//	OutSeq       next packet we send
//	OutAckSeq    newest of ours that the peer told about
//	InSeq        newest of the peer's that we accepted
//	InAckSeq     newest of the peer's that we ack: InSeq once its bunches are processed
//	InAckSeqAck  newest of our acks that the peer is known to have got
//
//	InAckSeqAck <= InAckSeq <= InSeq      OutAckSeq < OutSeq
//
// The history words that are sent reach from InAckSeq back to InAckSeqAck; the peer knows what is older. A packet is accepted when it is
// newer than InSeq, its ack isn't older than OutAckSeq, and it acks only what was sent. Any other is dropped without an answer.
//
// Of each packet sent the Handler hears exactly once, in the order of the packets:
// acked or lost. A packet more than 256 behind the one acked counts as lost, even if
// it arrived; reliable layers above must bear a doubled delivery.
//
// # Waiting for a flush
//
// With Config.WaitForFlush (newer than 4.27; used by 5.8) a receiver whose history
// would overflow with deliveries that the sender hasn't heard of refuses packets
// until one of its own is acked, so that no delivered packet is reported lost. Two
// ends that overflow at once would refuse each other's acks for ever; so an end gives up
// waiting when it has sent more than 32 packets since and the peer is more than 256
// ahead of what it accepted. A peer that heeds WindowFull is never so far ahead for another
// reason. The acks that were in those packets aren't sent again. Two ends that heed WindowFull never come to wait, however long
// the path: it counts a packet until the peer knows that its fate is known. Only WriteAgain may
// leave an end with more in its history, since it doesn't know which of the acks have arrived.
//
// # The caller's loop
//
//	n.WriteHeader(w)             // a packet begins; bunches follow
//	n.RefreshHeader(w, pos)      // it is complete
//	send(w.Bytes())
//	id := n.Commit()             // remember what went with id
//
//	err := h.Read(r)             // a packet came
//	_, process := n.Update(&h, handler)
//	if process {
//		ok := readBunches(r)     // after the handler heard
//		n.AckSeq(ok)
//	}
//
// Choose packetnotify/ackbits instead for a smaller, plain header (16 bits of sequence, 32 ack bits)
// where Unreal's wire isn't needed.
package packetnotify
