// Package driver listens and dials. It owns the socket, the clock and the connections (Unreal's UNetDriver).
//
// A game with a loop of its own calls two methods in it. The driver starts no goroutine:
//
//	srv, err := driver.Listen(":7777", driver.Config{Channels: chans})
//	for now := range ticker.C {
//		srv.TickDispatch(now) // receives datagrams; handlers get bunches, acks and naks
//		world.Step(srv.Time(now)) // the game
//		srv.TickFlush(now)    // sends what was written
//	}
//
// A game without one gives its step to Run:
//
//	err := srv.Run(ctx, func(now time.Time) { world.Step(srv.Time(now)) })
//
// Config.Joined is called for each connection after the handshake and the login. Config.Closed is called when it has ended, with the
// reason. All callbacks run within TickDispatch and TickFlush, on the caller's goroutine. Do passes a function to that goroutine from another.
//
// Run reads datagrams a few times between ticks and sends at the ticks. With Config.Prompt it answers datagrams, and sends what Do
// wrote, at once: that lowers latency and sends more packets.
//
// # When a dial fails
//
// Config.Closed gets a nil Conn, or one that hasn't joined, and Run returns. For errors.Is the error is [ErrFull], [ErrBanned],
// [ErrAlreadyConnected], [ErrDenied], [ErrVersion], [ErrExpired] or [ErrNoAnswer]. A server's game refuses a login in Config.Server's
// Authorize, with one of the first three or an error of its own. The client gets its text as the CloseResult's Reason:
//
//	Server: control.ServerConfig{Authorize: func(l *control.Login) error {
//		return fmt.Errorf("%w: until Monday", driver.ErrBanned)
//	}}
//
// Login hasn't the client id of the token. To refuse a client by that, close its connection before the login:
//
//	Accepted: func(c *driver.Conn) {
//		if banned[c.ClientID()] {
//			c.CloseWithError(fmt.Errorf("%w: until Monday", driver.ErrBanned))
//		}
//	}
//
// An error that is ErrFull, ErrBanned or ErrAlreadyConnected is ErrDenied as well, so ask errors.Is for ErrDenied last. The same reasons may end a connection
// that has joined: CloseWithError with ErrKicked or ErrBanned. Such an end is no ErrDenied, and Driver.Err stays nil.
//
// Choose what to show the player by errors.Is; the text of Err is for logs. Reason is the server's text for the player. It is empty
// when the link refused the client, as when the server is full.
//
// # When nothing happens
//
// Set Config.Logger. It reports forgotten settings, and what is refused or ignored, by reason; Driver.Refusals explains the reasons. It warns when TickDispatch is
// called without TickFlush, or the other way round.
// For actors, set actorrep.Config.Failed.
//
// # Timeouts
//
// A connection ends when nothing was received for Config.Timeout, on every link. Links have timeouts only for connecting: the token's
// with [Netcode], 5 s a step with [PlainSalted], and Config.Timeout with [PlainUnreal].
//
// # Faults
//
// A datagram that the system refuses is counted and lost, as on the network. When the socket itself fails, Err returns its error and
// connections wait; Rebind gives the driver another socket. A late tick counts as one second at most, so that a hitch doesn't count as
// silence.
//
// A panic in a callback comes out of TickDispatch or TickFlush. A game may recover it and tick on. A connection whose packet was being
// handled then ends with an error at its next tick, because what the packet held is lost. So does, at once, one whose Accepted panicked, or Joined without a login. All others continue, and functions given to Do
// and BeforeFlush that hadn't run yet run in the next tick.
//
// # Several cores
//
// A driver runs on one goroutine, and so does a world's Step. With actorrep.Config.Parallel: driver.Cores(n) a Step compares actors and
// encodes for its connections on n cores, and sends the same bytes. Use it for one world with many players in view of each other, when
// TickTimes.Step is a large part of the tick. By the clock a tick of 250,000 updates is twice as fast on two cores, and one of 10,000 to
// 20,000 is 1.3 to 1.7 times as fast; from about 2,500 updates down it gains little or nothing (go test ./bench -run xxx -bench StepClock;
// conditions are in bench/README.md). It doesn't help the driver's own work, nor the game's. For players in worlds that never meet, shards
// use several cores completely.
//
// With Config.Parallel: driver.Cores(n) a server with [Netcode] encrypts a tick's packets on n cores, and sends the same bytes. The driver's goroutine sends
// those that are encrypted while other cores encrypt the next. The encryption of 1,000 packets of 100 to 1,200 B adds 0.3 to 1.4 ms to a tick; with two cores, of which one
// is free, a third of that (go test ./netconn/driver -run xxx -bench Clock; conditions are in bench/README.md). A tick with its system calls is a few
// percent shorter. Up to 128 packets are encrypted on one core. So is all that is received decrypted, since a read has few datagrams.
//
// # Shards
//
// One driver runs on one goroutine, so on one core. ListenShards opens several drivers on one port, and RunShards runs them. Each has its
// own part of the clients. Use them for lobbies, relays, or many small matches, whose clients needn't meet.
//
// # Memory
//
// Leave GOGC at its default: the collector takes up to 2 % of a core of a server with 200 clients that see 1,000 actors each. Where memory
// is bounded, set GOMEMLIMIT to at least twice what is in use after a collection; at 1.2 times the collector takes 17 %
// (go test ./bench -run xxx -bench Collector -benchtime 1200x; conditions are in bench/README.md).
//
// # Links
//
// Below a connection is a link: the handshake that verifies addresses, and the encryption. The default is [Netcode]. It encrypts and
// authenticates packets, and clients need a token that a back end made with the server's key (netconn/netcode/tokenserver is such a
// service). The key is in Netcode.Key or in the environment:
//
//	export BUNCHNET_KEY=$(openssl rand -hex 32)
//
// A server without a key makes one for development and logs a warning; then only clients in the same process can connect. Use a token for
// one Dial only. [PlainUnreal], Unreal's stateless handshake, and [PlainSalted] encrypt nothing and authenticate nobody.
package driver
