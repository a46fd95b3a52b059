// Package web lets in clients that can't use UDP: browsers, and clients in networks that only let HTTPS through. One driver of a server serves UDP,
// WebTransport datagrams and WebSocket messages, so all players are in one world. The package is a module of its own, because of its dependencies.
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
//	socket, err := udp.Listen(":7777", udp.Config{NoPoller: true, Whole: true})
//	srv, err := driver.Listen("", driver.Config{Socket: udp.Join(socket, door), Channels: channels})
//	door.Tell(srv) // a player whose page was closed goes at once
//
// A client, native or in a browser (GOOS=js GOARCH=wasm), dials the address in its connect token, whatever the way:
//
//	socket, err := web.Dial(ctx, "https://play.example.com/bunchnet", web.DialConfig{Way: web.WebTransport})
//	cl, err := driver.Dial("192.0.2.1:7777", driver.Config{Socket: socket, Link: driver.Netcode{Token: token}})
//
// Everything above the socket works as over UDP: connect tokens, driver, channels, actors. UDP is still read and written in batches.
//
// A web.Server's sessions belong to one goroutine, so it can't be joined with shards (driver.ListenShards), of which each has its own. Beside them it has a driver
// of its own, with the same key and the shards' address in driver.Netcode.Addrs; driver.RunShards(ctx, append(shards, door), step) runs all.
//
// # The ladder
//
// [DialBest] tries UDP, 300 ms later WebTransport too, and 300 ms later WebSocket. It keeps the first that answers. To the driver this is one socket, so
// there is one dial with one token:
//
//	socket, err = web.DialBest(ctx, web.LadderConfig{UDP: server, URL: "https://play.example.com/bunchnet", Token: token, Last: socket})
//
// The client tries each way by sending probes as large as netcode's first packet, 1078 bytes: a session may begin on a path that carries nothing else. A Server answers them
// in its sessions, at most 8 wait for one peer; the server's UDP socket must answer them too, with as many bytes: udp.Join(web.Answer(socket), door); see [Answer]. Ladder.Way returns what was chosen, and Ladder.Attempts why; an inspector (netconn/inspect) of the client shows both with a Config.Name that
// returns Ladder.String. An inspector of the server shows the way that each player came by first, which its address has; with a Config.Name that returns [Server.Way] of the address it shows
// the present one. In browsers UDP fails at once.
//
// # When a path dies
//
// A path may stop working later: a firewall forgets UDP, a proxy ends a WebSocket. With the connect token in LadderConfig.Token the connection then goes on by another
// session, by WebTransport or WebSocket. Nothing that was sent reliably is lost, and the game at both ends notices nothing but a pause.
//
//	client                                              server
//	  | nothing has come for 0.3 s, or the session broke  |
//	  | sessions by WebTransport and WebSocket, and in    |
//	  | each a probe with the path id            -->      | asks the driver (Server.Tell) whose address that is
//	  |   <-- the answer                                  | or ends the session: no such connection
//	  | the connection's packets, by the first   -->      | from now on the session has the connection's address;
//	  |   <-- the connection's packets                    | the session before ends
//	  | ends the way before                               |
//
// The path id is netcode.Token.PathID, 16 bytes that only the client, the server and the token's back end know; a proxy that ends TLS sees it too. Who has it can keep packets
// from a connection, and read and forge none. If something comes by the old way before another one has answered, the connection stays there. The server's
// driver still knows the client by its first address (Conn.RemoteAddr); [Server.Way] returns the way that it is reached by now. A connection whose session broke waits 5 s
// for another one; the client looks for one as long, and then reads return ErrEnded. A server that only stood still moves nobody, if its packets come within 50 ms of its answer.
//
// A connection doesn't move to UDP, nor to a driver of another shard, nor when its server has ended it. For that call DialBest in the Dial function of driver/session's
// Redialer, with a RedialConfig.Silence of 2 s. It dials beside the connection after that, and ends this dial when packets arrive again. Otherwise the player comes back by a new connection: as the same
// player, with its actors and all that session.Players keeps. With its default of 0.3 s the two race, and a new connection may be there first. A server may also answer probes and nothing else. When the ladder of the dial before is in
// LadderConfig.Last, and nothing came by its way, this way is tried after the others.
//
// How long nothing comes to a player whose path dies, in ms, with 50 ms there and back and 60 messages a second; 20 players at once, on two cores with little else running. It is
// what "go run ./pause" in bench/web printed. "dials again" is a Redialer without a Token, and the connection is a new one each time:
//
//	                                  none lost       5 % lost each way
//	from UDP to WebTransport          p50     p99     p50     p99
//	    Token                         667     667     684     901
//	    dials again                  1166    1166    1416    2000
//	    both                          684     684     733     916
//	from UDP to WebSocket
//	    Token                         982     983    1184    2067
//	    dials again                  1566    1566    1716    3683
//	    both                         1033    1033     999    2399
//	from WebTransport to WebSocket
//	    Token                         984     984    1117    2165
//	    dials again                  1426    1615    1532    2604
//	    both                          983     983    1099    2400
//
// With both, the Redialer's Silence was 2 s, and no connection was a new one. The p99 of a WebSocket is TCP's and TLS's with loss.
//
// A probe, and its answer:
//
//	kind 1 | "bunchnet" 8 | nonce 16 | path id 16 | zeros 1037
//
// Kind 0xf5 asks, 0xf6 answers with the same bytes, and 0xf7 asks for the connection with the path id, which is zeros in the others.
//
// # Pages in the background
//
// A browser lets the timers of a hidden page run once a second, and after some minutes once a minute. Packets that come wake the program up, and the timers
// that are due run then: a client whose loop is a time.Ticker goes on as long as the server sends to it. In a hidden tab of Chromium with both limits it ticked 1000 to
// 1150 times in 20 s, by either way. What a page does in requestAnimationFrame, as a loop of Ebitengine's, stands still. So does all of a page that the
// browser freezes, for example because memory is short, or that a phone has put aside. The server then ends the connection after its Timeout, 60 s by default.
//
// So let a Redialer tick the client: when the page is seen again it dials, and the player is back within some seconds, as the same one if that was within
// session.Config.Keep. examples/browser does that, and go test -run TestHiddenTab there plays it in a Chromium, with the variable CI set.
//
// # Addresses
//
// A peer's address is its remote address in IPv6 form. Its zone has the way and a number, such as [::ffff:192.0.2.7%websocket.3]:51000. So each session
// has an address that no other session and no UDP peer has. Limits by address use the remote address. [WayOf] returns the way. Behind a proxy
// set ServerConfig.ClientAddr. Otherwise all clients have the proxy's address and share one MaxPerAddr.
//
// # Why packets are sealed twice
//
// TLS ends at the web server, or at a proxy before it, and doesn't show who the client is. The connection's link does, which is netcode by default: it
// admits clients by their tokens and encrypts packets up to the game. So a browser's page, a proxy and a game server needn't trust each other.
//
// Sealing and opening a datagram of 200 bytes a second time cost 0.5 µs. All the rest of it cost 11.9 µs by WebTransport, 14.0 µs by WebSocket and
// 0.7 µs by UDP, at both ends together (go test -run xxx -bench ., on a shared two-core virtual machine with other work). If that is too much, and what is
// between TLS and the game is trusted, use driver.PlainSalted, which doesn't encrypt. It has no tokens either.
//
// # Datagrams
//
// A datagram is a WebTransport datagram or a binary WebSocket message of 1 to 1500 bytes. WebTransport carries datagrams that fit the path's MTU, which
// QUIC measures: at least 1100 bytes, and 1215 from Chromium. So with the default Protocol.Bunch.MaxPacket of 1024 everything fits. A larger datagram is lost, and
// counted as TooLarge. The driver finds what more fits, by each way and in both directions (driver.Config.MaxDatagram): netcode's 1200 bytes of a packet, or what
// WebTransport takes of them. For players who come by UDP that needs a udp.Config with Whole. A WebSocket loses nothing, but when TCP loses a packet everything behind it waits. Use it where no other way works.
//
// # Bounds and defaults
//
//	sessions in all                          ServerConfig.MaxConns, 1024; then 503
//	sessions of one address                  MaxPerAddr, a quarter; then 503
//	sessions the driver hasn't answered      MaxHalfOpen, a quarter; one more ends the oldest. Each ends after HalfOpen, 5 s
//	sessions whose connection has ended      Idle, 15 s after the driver's last datagram to it, while it reads
//	requests for sessions                    Rate 2 a second and Burst 20 of one address, wider networks a multiple, TotalRate 500; then 429
//	sessions that name a connection          one request to the driver for each; it ends when there is none. A broken one's connection waits 5 s
//	pages that may connect                   Origins, those of the server's own host; then 403
//	connections in all                       2*MaxConns+64; one more ends the one that has been without a request for longest, or else the one without a
//	                                         session whose request is oldest
//	connections of one address               2*MaxPerAddr+16; more are closed at once
//	connections that ask for nothing         5 s for TLS and a request, 15 s without one; 30 s for a body and 2 min for an answer
//	what waits to be read                    4096 datagrams, 256 of one peer, 2048/MaxHalfOpen of one that the driver hasn't answered (8), ReceiveBuffer
//	                                         4 MiB; the newest are lost (Unread)
//	what waits to be sent to one peer        512 datagrams, SendBuffer 64 KiB; the oldest are lost (Unsent). On TCP the system holds 64 KiB more
//	a peer that takes nothing                5 s by WebSocket, 15 s by WebTransport; its session ends
//	a message                                1500 bytes; a longer one, and text, end the session
//	the end                                  Close sends what waits for half a second at most
//
// So an attacker with thousands of addresses delays newcomers, who may have to dial again, but keeps nobody out and disturbs no player. bench/web/hostile
// checks that. Each reason for refusal has a counter in [Counters], and ServerConfig.Logger gets at most one line a second.
//
// # Certificates
//
// A server with a domain name can use any tls.Config, such as that of golang.org/x/crypto/acme/autocert, whose challenge (TLS-ALPN) comes to the same port. For local play [NewCertificate] makes a
// certificate, and clients get its hash in DialConfig.CertificateHash. In browsers that works for WebTransport only, and for 13 days. So a local page at,
// for example, http://127.0.0.1:8080 also serves the web.Server at a path of its own, and names that in LadderConfig.WebSocketURL. examples/browser
// shows a real domain and local play.
//
// # When a dial fails
//
// Driver.Err and Run return [ErrNoSession] or [ErrEnded], with the reason. Browsers tell a page little: a wrong origin, a wrong certificate and a server
// that isn't there look the same. The server's counters and log show which it is.
package web
