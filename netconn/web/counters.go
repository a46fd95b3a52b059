package web

import "sync/atomic"

// Counters counts what a Server or a Client did so far.
type Counters struct {
	// WebTransports and WebSockets count accepted sessions. On a client the one for its way is 1 once it has a session.
	WebTransports, WebSockets uint64
	Received, Sent            uint64 // datagrams
	// Unread counts received datagrams that were dropped because the queue for reads, or their sender's share of it, was full.
	Unread uint64
	// Unsent counts datagrams that were dropped for newer ones, because their peer reads too slowly.
	Unsent uint64
	// TooLarge counts datagrams that weren't sent because a WebTransport session's path doesn't carry so many bytes. A few are
	// of the driver's search for the packet size; if there are many, make Protocol.Bunch.MaxPacket smaller.
	TooLarge uint64
	// NoPeer counts datagrams that weren't sent because their peer has gone.
	NoPeer uint64

	// Refused requests and connections, by reason; see ServerConfig.
	BadRequest, BadAddr, BadOrigin, Limited, Full, TooManyFromAddress, TooManyHalfOpen, BadUpgrade, TooManyConns uint64
	// Ended sessions, by reason. Left: the peer left, or its connection broke. Text and Long: it sent a text message, or one that is too long. Unanswered:
	// the driver never answered it. Idle: the driver no longer sends to it. Crowded: too many newer sessions came before the driver answered it. Slow: it
	// took nothing of what was sent for 5 s. NoPath: it asked to carry a connection that the driver doesn't have.
	Left, Text, Long, Unanswered, Idle, Crowded, Slow, NoPath uint64
	// Moved counts connections that went on by another session, on a Server; the sessions that they had before aren't counted as ended.
	Moved uint64
}

// counters is Counters that several goroutines add to.
type counters struct {
	webTransports, webSockets, received, sent, unread, unsent, tooLarge, noPeer                                  atomic.Uint64
	badRequest, badAddr, badOrigin, limited, full, tooManyFromAddress, tooManyHalfOpen, badUpgrade, tooManyConns atomic.Uint64
	left, text, long, unanswered, idle, crowded, slow, noPath, moved                                             atomic.Uint64
}

func (c *counters) get() Counters {
	return Counters{
		WebTransports: c.webTransports.Load(), WebSockets: c.webSockets.Load(), Received: c.received.Load(), Sent: c.sent.Load(),
		Unread: c.unread.Load(), Unsent: c.unsent.Load(), TooLarge: c.tooLarge.Load(), NoPeer: c.noPeer.Load(),
		BadRequest: c.badRequest.Load(), BadAddr: c.badAddr.Load(), BadOrigin: c.badOrigin.Load(), Limited: c.limited.Load(), Full: c.full.Load(),
		TooManyFromAddress: c.tooManyFromAddress.Load(), TooManyHalfOpen: c.tooManyHalfOpen.Load(), BadUpgrade: c.badUpgrade.Load(),
		TooManyConns: c.tooManyConns.Load(), Left: c.left.Load(), Text: c.text.Load(), Long: c.long.Load(), Unanswered: c.unanswered.Load(),
		Idle: c.idle.Load(), Crowded: c.crowded.Load(), Slow: c.slow.Load(), NoPath: c.noPath.Load(), Moved: c.moved.Load(),
	}
}
