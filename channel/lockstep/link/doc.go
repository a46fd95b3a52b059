// Package link carries small messages reliably and in order over datagrams, at eight
// bytes a datagram. It has only what lockstep games and other exchanges of commands need.
//
// It has no handshake, no encryption and no fragments. Its congestion control is simple: the bytes in flight are halved
// while more messages are resent than acked, down to one datagram. Its CRC detects damage, not attacks: where strangers
// can send, use netconn/netcode below it. A message has 255 bytes at most.
//
// # Datagram
//
// Version 1. Numbers are little-endian when flag L is set, otherwise big-endian;
// this package writes little-endian and reads both.
//
//	byte 0        2      3        5        7      8
//	     +--------+------+--------+--------+------+----------+ - - - -+------+----------+
//	     | CRC 16 | type | ACK 16 | SEQ 16 | size | data     | SEQ 16 | size | data     | ...
//	     +--------+------+--------+--------+------+----------+ - - - -+------+----------+
//	     '------------- 64-bit header -----------'            packed messages: 3 bytes each
//
//	type byte, bit 7            5   4   3            0
//	         +-----------------+---+----------------+
//	         |  reserved 3 (0) | L |     type 4     |
//	         +-----------------+---+----------------+
//
//	CRC   CRC-16/CCITT-FALSE of all bytes after it: polynomial 0x1021, initial value 0xffff, not
//	      reflected, no final xor; of "123456789" it is 0x29b1. With a Conversation other than 0, of its
//	      4 bytes (little-endian) followed by those
//	type  1 reliable: SEQ, size and data of one message or several
//	      2 ping: SEQ is the ping's number, never 0; size is 0
//	      3 pure ack: SEQ is the number of the ping it answers, or 0; size is 0
//	ACK   cumulative: all messages up to this one were received; 0xffff before the first
//	SEQ   number of a message; each end's first is 0, and they wrap at 65536
//	size  bytes of data, 0 to 255
//
// A reliable datagram must end exactly with a message. Anything else is refused whole.
//
// # Resending
//
// A message goes out with the next Tick, and again each time its own timer runs out,
// until it is acked:
//
//	RTO = SRTT + max(4*RTTVAR, 10 ms), between MinRTO and MaxRTO    (Jacobson, Karels)
//	SRTT += (R-SRTT)/8    RTTVAR += (|R-SRTT|-RTTVAR)/4
//	RTO *= Backoff for a message each time it is resent; 1.5 unless configured
//
// Samples R come from acks that cover only messages sent once (Karn's rule), and from answers to pings, which carry the
// ping's number. The messages due at a Tick are packed into datagrams first-fit, oldest first, up to the window. The
// oldest one, when it was sent twice without an ack, is sent with them.
//
// # The caller's loop
//
//	l.Send(now, command)      // queue; ErrFull when Window messages aren't acked
//	l.Receive(now, datagram)  // calls Handler.Message in order; an error: the datagram was refused
//	l.Tick(now)               // calls Handler.Datagram
//	at, ok := l.NextDeadline()
//
// now is the time by any clock, a time.Since of when it began for example. It may count from anywhere, and be set ahead or back.
//
// # Choosing
//
// Package netconn is for a game with a server of its own: channels, security, bandwidth.
// packetnotify/ackbits is for messages that may be lost. Choose link for a few players who exchange
// commands, through a relay or directly. A Link is a lockstep.Transport.
//
// # Bounds
//
//	messages sent and not acked      Window, 256; more: ErrFull, nothing queued
//	messages received out of order   Window, 256; beyond it they are dropped, and resent
//	datagrams of one Tick            those of Window messages, a ping and an ack
//	pings remembered                 8
package link
