// Package driver listens and dials: it owns the socket and the clock, and turns
// them into connections (Unreal's UNetDriver).
//
// A game that has its own loop calls two methods in it, and nothing here starts a
// goroutine:
//
//	srv, err := driver.Listen(":7777", driver.Config{Channels: chans})
//	for now := range ticker.C {
//		srv.TickDispatch(now) // datagrams in, bunches to channels, acks and naks
//		world.Step(now)       // the game
//		srv.TickFlush(now)    // what was written goes out
//	}
//
// A game without one gives its step to Run:
//
//	err := srv.Run(ctx, func(now time.Time) { world.Step(now) })
//
// Connections appear through Config.Joined, after the handshake and the login, and
// leave through Config.Closed, which says why. All callbacks come from within
// TickDispatch and TickFlush, on the caller's goroutine; Do hands a function to it from
// another.
//
// Run takes datagrams in a few times between ticks and sends at the ticks. With Config.Prompt it answers
// datagrams, and sends what Do wrote, at once: latency for packets.
//
// # Links
//
// Below a connection is a link: the handshake that proves addresses, and whatever
// seals packets. [Netcode] encrypts and authenticates; its clients need a token from a back
// end. [PlainUnreal], Unreal's stateless handshake, and [PlainSalted] encrypt nothing and authenticate
// nobody.
package driver
