// Package salted is a connection over datagrams by challenge and response: the scheme of
// Glenn Fiedler's "Client Server Connection". A server has slots, a client takes one by
// showing that it receives what is sent to its address, and both then know each other's
// packets by the xor of two random salts.
//
// Client and Server are machines without sockets, clocks or goroutines: bytes and the
// time go in, bytes and the next deadline come out.
//
// # What it protects against, and what not
//
// Against people elsewhere in the network, who can send packets with a false source but can't
// read ours: they take no slot, end no connection, inject no payload (each is a guess at 64
// bits), can't make the server answer others with more than they sent themselves, and
// cost it no memory.
//
// It does NOT encrypt, and it does NOT authenticate: not the client, not the server, not
// a packet. Whoever reads the traffic, in a café or at a provider, reads the payloads, knows
// the prefix, and can inject, change, replay and disconnect at will; the CRC-32 finds
// accidents and other protocols, not forgery. Within a connection a payload that the network
// duplicates is delivered twice, as UDP does; packetnotify and ackbits above drop it. Who may play is the
// game's business. Where that isn't enough, use netconn/netcode: signed tokens and
// encryption, for the price of a back end. For peers of Unreal, use netconn/handshake.
// Choose salted for LANs, prototypes, and games that have nothing to steal.
//
// # Exchange
//
//	client                                            server
//	  | request, 1000 B: client salt                    |
//	  |------------------------------------------------>|  no memory: the server salt is a MAC
//	  |           challenge, 21 B: both salts           |  of address and client salt
//	  |<------------------------------------------------|  (or denied, 14 B: no slot is free,
//	  |                                                 |  or none for this address)
//	  | response, 1000 B: xor of the salts, client salt |
//	  |------------------------------------------------>|  the MAC fits: takes the lowest free slot
//	  |            keep-alive, 17 B: slot               |
//	  |<------------------------------------------------|
//	  | keep-alive, 13 B, and payloads                  |
//	  |<----------------------------------------------->|
//	  | 10 times disconnect, 14 B                       |
//	  |<----------------------------------------------->|
//
// Each end sends its state's packet ten times a second until it is answered, and a connected
// one a keep-alive when it has sent nothing for a tenth of a second. After 5 s without a packet
// of the other it gives up. A client whose responses aren't answered for 2 s sends every
// other time its request again: by then the server may have restarted, or forgotten the secret
// of its challenge.
//
// # Packets
//
// Version 1; integers are little endian. Every answer to a packet of somebody not
// connected is smaller than that packet.
//
//	bytes  field
//	4      CRC-32 (IEEE) over the protocol id (8) and all that follows
//	1      type
//	       1 request     client salt 8 | zeros, 1000 in all
//	       2 challenge   client salt 8 | server salt 8
//	       3 response    prefix 8 | client salt 8 | zeros, 1000 in all
//	       4 denied      client salt 8 | reason 1
//	       5 keep-alive  prefix 8 | slot 2 | slots 2        from a server
//	                     prefix 8                           from a client
//	       6 payload     prefix 8 | 1 to 1200 bytes
//	       7 disconnect  prefix 8 | reason 1
//
// The prefix is client salt xor server salt. A size or padding other than these, an
// unknown type or a wrong prefix is refused, silently and with a counter of its own.
//
// # No pending table
//
// A table of half-open connections can be filled by whoever sends requests; one that evicts
// at random lets a flood evict the honest. So there is none: the server salt is the
// first 64 bits of HMAC-SHA256 over address, port and client salt, with a secret that is
// replaced every 10 s and honoured for 10 s more. The price is a MAC for each request and
// response, less than a microsecond. A response within that time could be replayed after
// its connection has ended: the last sessions' prefixes are remembered for that, two for each slot and
// 64 more. It is answered with one disconnect, as its client may have missed those. What isn't
// remembered is the prefix of a client that never knew of its slot and timed out: it may have
// another one.
//
// # Connecting again
//
// A request and response with a new salt from an address that holds a slot replace its connection
// as soon as that was silent for three Intervals: Disconnected with Replaced, then Connected in the same slot, even on a full server.
// They prove that the client at this address is another process, or has forgotten the old
// connection. A response of an attempt before, which the network held back, ends no connection
// that is alive. Someone with a false source can't, since he doesn't see the challenge. A client that comes back
// from another port is another client to the server: it takes a second slot until the first has
// timed out, and is denied when there is none.
//
// # The caller's loop
//
//	for each datagram { server.Receive(now, from, p) }
//	...                                             // the game: server.SendPayload
//	server.Tick(now)
//	wake at server.NextDeadline()
//
// All methods of a machine belong to one goroutine. From a handler's functions all
// may be called but Receive and Tick.
package salted
