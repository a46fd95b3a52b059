// Package netcode is netcode 1.02: connections that only holders of a token from the game's back
// end can make, encrypted and authenticated packet by packet. Clients and servers in C, C++, Rust and C#
// speak it.
//
// # The exchange
//
//	client                                         server
//	  | request: the private token, sealed   -->     | opens it with the shared key
//	  |   <-- challenge: sealed for the client       | (denied when full)
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
//	1 denied      0
//	2 challenge   sequence 8 | challenge token 300
//	3 response    sequence 8 | challenge token 300
//	4 keep-alive  slot 4 | slots 4
//	5 payload     1 to 1200
//	6 disconnect  0
//
// # Where this is stricter than the reference, on the same wire
//
// A challenge is answered at once instead of at the next tenth of a second. A challenge token is
// bound to the address and the connect token it was made for, in its spare bytes. A token whose client was
// connected once isn't taken again, from the same address neither, and an old challenge answers no
// later request. The replay window has no sequence it doesn't remember. One clock runs for a client's
// whole attempt over all its servers.
//
// # Bounds
//
//	clients                         ServerConfig.Slots, 16384 at most
//	addresses with a challenge      4 a slot, one for each address and client id, for 10 s or the token's timeout if
//	                                that is less; when full, new ones aren't answered
//	tokens remembered               8 a slot and 2048 at least; the oldest is forgotten
//
// All that strangers make the server look up is a hash with a random seed, and packets that it refuses cost no memory.
package netcode
