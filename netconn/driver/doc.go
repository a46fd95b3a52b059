// Package driver listens and dials: it owns the socket and the clock, and turns
// them into connections (Unreal's UNetDriver).
//
// A game that has its own loop calls two methods in it, and nothing here starts a
// goroutine:
//
//	srv, err := driver.Listen(":7777", driver.Config{Channels: chans})
//	for now := range ticker.C {
//		srv.TickDispatch(now) // datagrams in, bunches to channels, acks and naks
//		world.Step(srv.Since(now)) // the game
//		srv.TickFlush(now)    // what was written goes out
//	}
//
// A game without one gives its step to Run:
//
//	err := srv.Run(ctx, func(now time.Time) { world.Step(srv.Since(now)) })
//
// Connections appear through Config.Joined, after the handshake and the login, and
// leave through Config.Closed, which says why. All callbacks come from within
// TickDispatch and TickFlush, on the caller's goroutine; Do hands a function to it from
// another.
//
// Run takes datagrams in a few times between ticks and sends at the ticks. With Config.Prompt it answers
// datagrams, and sends what Do wrote, at once: latency for packets.
//
// # When a dial fails
//
// Config.Closed gets a nil Conn, or one that hasn't joined, and Run returns: with [ErrFull], [ErrBanned], [ErrAlreadyConnected],
// [ErrDenied], [ErrVersion], [ErrExpired] or [ErrNoAnswer], for errors.Is. A server's game refuses a login in Config.Server's Authorize,
// with one of the first three or an error of its own, whose words the client gets as the CloseResult's Reason:
//
//	Server: control.ServerConfig{Authorize: func(l *control.Login) error {
//		return fmt.Errorf("%w: until Monday", driver.ErrBanned)
//	}}
//
// Choose what to show the player by the error; the words of Err are for logs. Reason is the server's own words to the player, and
// empty when the link refused, as a full server's does.
//
// # When nothing happens
//
// Give Config a Logger. It is told of settings that were forgotten, and of what is refused or ignored, by reason: Driver.Refusals
// says what they mean. An actorrep.World has Failed for the same purpose.
//
// # Timeouts
//
// A connection ends when nothing was received for Config.Timeout, whatever its link; links have no timeout of their own but
// for connecting: a token's with [Netcode], 5 s a step with [PlainSalted], and Config.Timeout with [PlainUnreal].
//
// # Faults
//
// What the system refuses of single datagrams is counted and lost, as on the network. When the socket itself
// fails, Err says so and connections wait; Rebind gives the driver another one. A tick that comes late counts as one second
// at most, so that a hitch isn't taken for silence.
//
// # Shards
//
// One driver is one goroutine's work, which a core bounds. ListenShards opens several on one port and RunShards runs them,
// each with its own part of the clients: for lobbies and relays, or many small matches, whose clients needn't meet.
//
// # Links
//
// Below a connection is a link: the handshake that proves addresses, and whatever
// seals packets. The default is [Netcode]: packets are encrypted and authenticated, and clients need a token that
// a back end made with the server's key (netconn/netcode/tokenserver is that service). The key is
// in Netcode.Key or in the environment:
//
//	export BUNCHNET_KEY=$(openssl rand -hex 32)
//
// A server without a key makes one for development and warns; then only clients in the same process, or with the
// same variable, can connect. A token is for one Dial. [PlainUnreal], Unreal's stateless handshake, and [PlainSalted]
// encrypt nothing and authenticate nobody; they are chosen by name.
package driver
