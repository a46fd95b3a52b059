// Package salted makes connections over datagrams by challenge and response, after Glenn
// Fiedler's "Client Server Connection". A server has slots. A client takes one by showing
// that it receives what is sent to its address. From then on each end recognizes the
// other's packets by the xor of two random salts.
//
// Client and Server have no sockets, clocks or goroutines: bytes and the time go in, bytes
// and the next deadline come out.
//
// # What it protects against, and what not
//
// It protects against attackers who can send packets with a false source address but can't
// read the traffic. They can't take a slot, end a connection or inject a payload: each
// of these takes a guess at 64 bits. They can't make the server send more bytes to somebody
// else than they sent themselves, and they cost it no memory.
//
// It does NOT encrypt, and it does NOT authenticate: not the client, not the server, not
// a packet. Whoever can read the traffic, in a café or at a provider, reads the payloads, knows
// the prefix, and can inject, change, replay and disconnect at will. The CRC-32 detects
// damage and other protocols, not forgery. A payload that the network duplicates is delivered
// twice, as with UDP; packetnotify and ackbits above drop the second. The game decides who may
// play.
//
// Choose salted for LANs, prototypes, and games that have nothing to steal. Otherwise use
// netconn/netcode, which has signed tokens and encryption but needs a back end. For peers of
// Unreal, use netconn/handshake.
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
// A client sends its request, and then its response, ten times a second until the server answers.
// A connected end sends a keep-alive when it has sent nothing for a tenth of a second. Either end
// gives up after 5 s without a packet from the other. When a client's responses aren't answered
// for 2 s, every other packet is the request again: the server may have restarted, or have
// forgotten the secret of its challenge.
//
// # Packets
//
// This is version 1. Integers are little endian. An answer to an address that isn't
// connected is always smaller than the packet that it answers.
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
//	       6 payload     prefix 8 | 1 to 1439 bytes
//	       7 disconnect  prefix 8 | reason 1
//
// The prefix is client salt xor server salt. A packet with another size or padding, an
// unknown type or a wrong prefix is dropped without an answer. Each reason has a counter.
//
// # No pending table
//
// Anybody who sends requests could fill a table of half-open connections; with random eviction
// a flood would evict honest clients. So there is no such table. The server salt is the
// first 64 bits of HMAC-SHA256 over address, port and client salt, with a secret that is
// replaced every 10 s and accepted for 10 s more. The cost is a MAC for each request and
// response, less than a microsecond.
//
// A response could be replayed within that time, after its connection has ended. So the server
// remembers the addresses and salts of the last clients, two for each slot and 64 more. It answers a
// replayed response with one disconnect, since the client may have missed the others. It doesn't
// remember a client that timed out before it knew of its slot: that client may
// take a slot again.
//
// # Connecting again
//
// A client may connect again from an address that holds a slot, with a new salt. Its response
// replaces the old connection once that has been silent for three Intervals: the handler gets
// Disconnected with Replaced, then Connected in the same slot, even on a full server. The new salt
// proves that the client is another process, or has forgotten the old connection. The
// silence makes sure that a delayed response of an earlier attempt doesn't end a live
// connection. A sender with a false source address can't replace anything, since it doesn't
// see the challenge.
//
// To the server, a client that comes back from another port is another client. It takes a
// second slot until the first has timed out, and is denied when no slot is free.
//
// # The caller's loop
//
//	for each datagram { server.Receive(now, from, p) }
//	...                                             // the game: server.SendPayload
//	server.Tick(now)
//	wake at server.NextDeadline()
//
// One goroutine must call all methods of a Server or Client. A handler's Send may call none of
// them, since a packet is still being sent. Its other functions may call all but Receive and Tick.
package salted
