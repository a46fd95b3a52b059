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
// # Where this is stricter than the reference, on the same wire
//
// A challenge is answered at once instead of at the next tenth of a second. A challenge token is
// bound to the address and the connect token it was made for, in its spare bytes. A token whose client was
// connected once isn't taken again, from the same address neither, and an old challenge answers no
// later request. A client whose responses aren't answered for 2 s sends every other time its request again, until the token's timeout is over: by then the
// server may have restarted, or forgotten whom it challenged. The replay window has no sequence it doesn't remember. One clock runs for a client's
// whole attempt over all its servers.
//
// # A client that starts again
//
// The reference ignores requests from the address of a client with a slot, until that one has timed out. So does this server while it hears that
// client, which says something ten times a second. After 2 s of silence it challenges who shows another fresh token there, and the one who answers has the
// place of the former, whose slot ends as AddrTaken: a program that crashed and starts again at the same port with another client id needn't wait for a timeout. Who
// only sends from a foreign address never sees the challenge. Who also listens on the path, and has a token, can end a connection only while its client is
// silent, as on a path that is dark. With the same client id see ServerConfig.TakeOver, which doesn't wait.
//
// # Denials
//
// A denied packet without a plaintext says that the server is full, as in the reference. Besides, this server tells two reasons in
// one byte of plaintext: 1, a client with that id is connected, and 2, the server has another protocol id. A client of the reference
// drops such a packet for its size and goes on asking, as when it gets no answer. A token belongs to the first address that
// shows it, so that nobody else gets an answer to the same request.
//
// # Timeouts
//
// A token's timeout is how long a client waits for each server's answer, and a server for the client's. It is also how long a
// connection may be silent, unless ClientConfig.Timeout or ServerConfig.Timeout, each for its own end, says otherwise.
//
// A client has its slot from its answer to the challenge on, and what it says next isn't awaited any shorter. To free the slot sooner would shut
// out a client whose path is dark for some seconds just then, for good: its token is spent. And it would keep nobody from holding
// slots, since whoever has a token can answer and stay. The same client can have it with another token: see ServerConfig.TakeOver.
//
// # Bounds
//
//	clients                         ServerConfig.Slots, 16384 at most
//	addresses with a challenge      4 a slot and 1024 at least, for 10 s or the token's timeout if that is less; of these 8 for
//	                                each address and port, 8 for each client id, and an eighth for each IPv4 address or IPv6 /64
//	                                (the loopback isn't counted). What exceeds a bound isn't answered; of an address and
//	                                an id the oldest gives way once it had a second.
//	tokens remembered               8 a slot and 2048 at least; the oldest is forgotten
//
// All that strangers make the server look up is a hash with a random seed, and packets that it refuses cost no memory.
package netcode
