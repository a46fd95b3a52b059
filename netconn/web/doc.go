// Package web lets clients in that UDP can't reach: browsers, and networks that pass nothing but HTTPS. A server takes UDP, WebTransport datagrams and
// WebSocket messages in one driver, so in one tick and one world. It is a module of its own, because of its dependencies.
//
//	a browser            a native client                                  a native client
//	    |                   |         |                                        |
//	WebTransport         WebTransport WebSocket                                |
//	(HTTP/3, UDP 443)               (HTTPS, TCP 443)                           |
//	    |                   |         |                                        |
//	    +-------------------+---------+                                        |
//	              |                                                            |
//	         web.Server                                                udp.Listen, UDP 7777
//	 two goroutines a session, which only pass datagrams on                    |
//	 through bounded queues                                                    |
//	              |                                                            |
//	              +------------------------- udp.Join -------------------------+
//	                                            |
//	                              driver.Listen: one goroutine
//
// A server:
//
//	door, err := web.NewServer(web.ServerConfig{Origins: []string{"https://play.example.com"}})
//	addr, err := door.Listen(":443", web.ListenConfig{TLS: tlsConfig, Handler: pages})
//	socket, err := udp.Listen(":7777", udp.Config{NoPoller: true})
//	srv, err := driver.Listen("", driver.Config{Socket: udp.Join(socket, door), Channels: channels})
//	door.Tell(srv) // a player whose page was closed goes at once
//
// A client, native or in a browser (GOOS=js GOARCH=wasm), dials the address that is in its connect token, by any way:
//
//	socket, err := web.Dial(ctx, "https://play.example.com/bunchnet", web.DialConfig{Way: web.WebTransport})
//	cl, err := driver.Dial("192.0.2.1:7777", driver.Config{Socket: socket, Link: driver.Netcode{Token: token}})
//
// Everything above the socket is as over UDP: the connect tokens, the driver, channels, actors. UDP's batches stay as they are. A server that
// shares its port among shards (driver.ListenShards) can't have a door beside them.
//
// # The ladder
//
// [DialBest] comes by the best way that answers: UDP, a moment later WebTransport too, a moment later a WebSocket. It is one socket, so one dial with one
// token:
//
//	socket, err := web.DialBest(ctx, web.LadderConfig{UDP: server, URL: "https://play.example.com/bunchnet"})
//
// UDP is tried by probes of 25 bytes, which a server's socket of [Answer] answers with as many: udp.Join(web.Answer(socket), door). Ladder.Way says
// what was chosen, Ladder.Attempts why. In browsers UDP fails at once. For a path that dies later dial in driver/session's Redialer: it comes by what
// answers then, and the player stays who it was.
//
// # Addresses
//
// A peer's address is its remote one in the form of IPv6, with the way and a number in its zone, such as [::ffff:192.0.2.7%websocket.3]:51000. So no
// two sessions, and no peer of UDP, have the same; what limits peers by their addresses sees the remote one. [WayOf] tells the way. Behind a proxy set
// ServerConfig.ClientAddr, or all clients are at the proxy's address and have MaxPerAddr together.
//
// # Why packets are sealed twice
//
// TLS ends at the web server, or at a proxy before it, and says nothing of who the client is. The link below the connection, netcode by
// default, does: it admits by tokens, and its packets are sealed up to the game. A browser's page, a proxy and a game server needn't trust each other.
// Sealing and opening a datagram of 200 bytes once more cost 1.8 µs, where all the rest of it cost 8.6 µs by WebTransport, 11.6 µs by WebSocket and
// 0.6 µs by UDP, at both ends together (go test -run xxx -bench ., on a shared two-core virtual machine under load). Where that is too much, and
// nobody between TLS and the game is to be kept out, driver.PlainSalted seals nothing; it knows no tokens either.
//
// # Datagrams
//
// A datagram is a WebTransport datagram or a binary WebSocket message of 1 to 1500 bytes. WebTransport carries what the path's MTU leaves: QUIC finds it out,
// and it is at least 1100 bytes, so with the default Protocol.Bunch.MaxPacket, 1024, everything fits. What doesn't is lost, and counted as TooLarge.
// A WebSocket loses nothing, and holds up everything behind a packet that TCP lost: it is the way for where no other works.
//
// # Bounds and defaults
//
//	sessions in all                          ServerConfig.MaxConns, 1024; then 503
//	sessions of one address                  MaxPerAddr, a quarter; then 503
//	sessions the driver hasn't answered      MaxHalfOpen, a quarter; one more ends the oldest. Each ends after HalfOpen, 5 s
//	sessions whose connection has ended      Idle, 15 s after the driver's last datagram to it
//	requests for sessions                    Rate 2 a second and Burst 20 of one address, wider networks a multiple, TotalRate 500; then 429
//	pages that may connect                   Origins, those of the server's own host; then 403
//	connections in all                       2*MaxConns+64; one more ends the one that has been without a request or a session for longest
//	connections of one address               2*MaxPerAddr+16; more are closed at once
//	connections that ask for nothing         5 s for TLS and a request, 15 s without one; 30 s for a body and 2 min for an answer
//	what waits to be read                    4096 datagrams, 256 of one peer, ReceiveBuffer 4 MiB; the newest are lost (Unread)
//	what waits to be sent to one peer        512 datagrams, SendBuffer 64 KiB; the oldest are lost (Unsent). On TCP the system holds 64 KiB more
//	a peer that takes nothing                5 s by WebSocket, 15 s by WebTransport; its session ends
//	a message                                1500 bytes; a longer one, and text, end the session
//	the end                                  Close sends what waits for half a second at most
//
// So strangers with thousands of addresses hold up newcomers, who may have to dial again, but keep nobody out, and disturb nobody who plays: bench/web/hostile
// checks that. Each refusal has a counter in [Counters], and ServerConfig.Logger gets one line a second.
//
// # Certificates
//
// For a server with a name any tls.Config will do, such as that of golang.org/x/crypto/acme/autocert. For local play [NewCertificate] makes one, and
// clients get its hash in DialConfig.CertificateHash: in browsers that works for WebTransport only, and for 13 days. A page for local play, at
// http://127.0.0.1:8080, serves the door at a path of its own too, and names it in LadderConfig.WebSocketURL. examples/browser does both.
//
// # When a dial fails
//
// Driver.Err, and what Run returns, is [ErrNoSession] or [ErrEnded] with the reason. Browsers tell a page little: a wrong origin, a wrong certificate and a
// server that isn't there look the same, and the server's counters and log tell them apart.
package web
