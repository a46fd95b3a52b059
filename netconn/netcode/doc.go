// Package netcode is netcode 1.02: connections that only holders of a token from the game's back
// end can make, encrypted and authenticated packet by packet. Clients and servers in C, C++, Rust and C#
// speak it.
//
// # The exchange
//
//	client                                         server
//	  | request: the private token, sealed   -->     | opens it with the shared key
//	  |   <-- challenge: sealed for the client       | (or denied, see below)
//	  | response: the challenge back         -->     | takes a slot
//	  |   <-- keep-alive: slot, slots                |
//	  | payloads, keep-alives 10 times a second <--> |
//	  | 10 times disconnect                     <--> |
//
// # Packets
//
// Little-endian. All but the request are sealed with ChaCha20-Poly1305: nonce four zero bytes and
// the sequence, additional data the version tag, protocol id and prefix byte.
//
//	request     0 | "NETCODE 1.02\0" 13 | protocol id 8 | expire 8 | nonce 24 | private token 1024
//	the others  prefix 1 = sequence bytes << 4 | type | sequence, 1 to 8 bytes | ciphertext | MAC 16
//
//	type  plaintext
//	1 denied      0 or 1, see below
//	2 challenge   sequence 8 | challenge token 300
//	3 response    sequence 8 | challenge token 300
//	4 keep-alive  slot 4 | slots 4
//	5 payload     1 to 1200
//	6 disconnect  0
//
// # Differences from the reference
//
// The wire is the same. The reference is netcode's implementation in C.
//
//	challenges      are answered at once, not at the next tenth of a second
//	                belong to the address and the connect token that they were made for (in the token's spare bytes)
//	connect tokens  aren't accepted again once their client was connected, not even from the same address
//	no answer       a client whose responses aren't answered for 2 s sends requests and responses in turn, until the
//	                token's timeout: the server may have restarted, or dropped the challenge
//	replay window   packets older than the window are dropped
//	timeouts        a client's clock runs on when it goes to the next server of its token
//
// # Path ids
//
// Packets don't say which connection they are of; their address does. Where another layer carries them by another path, [Token.PathID] names the connection to it, and
// [Server.AddrOfPath] finds its address. The id isn't on the wire of this package.
//
// # A client that starts again
//
// The reference ignores requests from an address with a connected client until that client has timed out. This server does so only while it
// hears that client, which sends ten times a second. After 2 s of silence it challenges a request with another fresh token from that address.
// When the challenge is answered, the new client gets the slot, and the former connection ends with [AddrTaken]. So a program that crashed and
// starts again at the same port needn't wait for a timeout.
//
// An attacker who forges the source address never sees the challenge. One who can also read the traffic, and has a token, can end a
// connection only while its client is silent. A client that comes back with the same client id needn't wait for the silence: see
// [ServerConfig].TakeOver.
//
// # Denials
//
// A denied packet without plaintext says that the server is full, as in the reference. This server adds two reasons in one byte of
// plaintext: 1, a client with that id is connected; 2, the server has another protocol id. A client of the reference drops such a
// packet, and asks again until its timeout. A token belongs to the first address that sends it: the server doesn't answer it from another.
//
// # Timeouts
//
// A token's timeout bounds how long a client waits for each server's answer, and how long a server waits for the client's. It also
// bounds the silence on a connection, unless ClientConfig.Timeout or ServerConfig.Timeout is set at that end.
//
// A client gets its slot when it has answered the challenge. The timeout is the same before and after its first payload. With a shorter one, a
// client whose packets are lost for some seconds at that moment would lose its slot, and its token is used up. Nor would it protect the slots:
// an attacker with tokens can answer and stay.
//
// # Bounds
//
//	clients                     ServerConfig.Slots, at most 16384
//	challenges kept             four for each slot, at least 1024. At most 8 for each address and port, 8 for each client id, and an
//	                            eighth of all for each IPv4 address or IPv6 /64; loopback has no such bound. Further requests
//	                            aren't answered. For an address and port, an id, an address, and when there are as many as are kept,
//	                            the oldest makes room when it is older than 1 s. In the last two cases it does so at once for a
//	                            client id that has at least two fewer than its own, and otherwise for none that has more, or
//	                            that made room itself in the last 10 s
//	time of a challenge         10 s, or the token's timeout if that is shorter
//	used tokens remembered      8 for each slot, at least 2048; then the oldest is forgotten
//
// Lookups by strangers' bytes are in hash tables with a random seed. A refused packet costs no memory.
package netcode
