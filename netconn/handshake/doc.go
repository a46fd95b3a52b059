// Package handshake is Unreal's stateless connect handshake: a cookie proves that a
// client really is at its address before the server keeps anything about it. It
// authenticates nobody and encrypts nothing; for the open internet choose
// netconn/netcode. Choose this package to talk to Unreal's wire, or on a trusted network.
//
// # The exchange
//
//	client                                         server
//	  | Initial    secret 0, time 0, cookie 0  -->   | keeps nothing
//	  |   <-- Challenge  secret, time, cookie        | cookie = HMAC-SHA1(secret, time | address)
//	  | Response   the three echoed            -->   | checks them, makes the connection
//	  |   <-- Ack        time -1, cookie             |
//	  | game packets, sequences from the cookie <--> |
//
// The client repeats what it sent last once a second. A challenge that wasn't acked
// for 5 s makes it begin again: its address may have changed. The server answers a Response that comes again with another Ack.
//
//	cookie u16le[0] & 0x3fff   the server's first packet sequence
//	cookie u16le[1] & 0x3fff   the client's
//
// A server that gets a game packet from an unknown address asks the client there to restart. A client that has
// received no game packet for a while then repeats the exchange, and ends it with a RestartResponse, which also
// holds its first cookie. The server moves the connection with that cookie to the new address, and sequences go on. A client
// may also restart because it receives nothing. If its address hasn't changed, the restart ends when a game packet
// arrives, or an Ack with the connection's first cookie.
//
// # The packet
//
// Low bits first; "v" is the handshake version.
//
//	bits      field              there
//	0..32     magic              configured (net.MagicHeader)
//	2         SessionID          v >= 3
//	3         ClientID           v >= 3
//	1         handshake = 1      always; 0 is a game packet
//	1         restart            always
//	8 8 8 8   MinVersion, Version, type, sent count   v >= 1
//	32        network version    v >= 2
//	16        runtime features   Protocol.Features (5.3 and later)
//	1         secret id          types 0 1 2 3 5
//	64        timestamp, f64 s   types 0 1 2 3 5
//	160       cookie             types 0 1 2 3 5
//	160       first cookie       type 5
//	64..128   random bytes       v >= 1
//	1         end mark, then zeros to a byte
//
//	version  engine               handshake  restart  restart response   (bits without magic, ids, random)
//	0        4.26 to 5.0             227         2         387
//	1                                259        34         419
//	2, 3     5.1                     291        66         451
//	3, 4     5.3 and later           307        82         467
//
// # Constants
//
// Unreal's: a cookie has 20 bytes. A secret has 64 bytes and is replaced after 15 s plus up to 5 s; two are kept, so a
// cookie is valid for (15+5)*2 s. An unanswered packet is sent again after 1 s.
//
// This package's: no answer is longer than the packet that it answers. A restart request may be longer than that: a shorter packet is
// answered with a probability of its size over the request's. So an address gets on average no more bytes than it sent, and all
// requests together never have more than all packets. At most 1024 restart requests are sent in a second, and 512 upgrade
// notices in 300 s. A cookie makes one connection; the last 4096 used ones are remembered, or as many as the server has room for, and what is older than those makes none.
package handshake
