package web

import "sync/atomic"

// Counters is what a Server, or a Client, did since it began.
type Counters struct {
	// WebTransports and WebSockets are sessions that were accepted; on a client 1 for what it came through by.
	WebTransports, WebSockets uint64
	Received, Sent            uint64 // datagrams
	// Unread is datagrams that came and found the queue of what waits to be read full, or their sender's share of it; the newest are lost.
	Unread uint64
	// Unsent is datagrams that made room for newer ones, because their peer reads too slowly; the oldest are lost.
	Unsent uint64
	// TooLarge is datagrams to be sent that are larger than the path of a WebTransport session carries: make Protocol.Bunch.MaxPacket smaller.
	TooLarge uint64
	// NoPeer is datagrams to be sent to a peer that has gone.
	NoPeer uint64

	// Refused, by reason; see ServerConfig.
	BadRequest, BadAddr, BadOrigin, Limited, Full, TooManyFromAddress, TooManyHalfOpen, BadUpgrade, TooManyConns uint64
	// Ended, by reason: the peer left or broke off; a message that is text, or too long; the driver never answered it, or no longer does; the
	// driver hadn't answered it when too many newer ones came; it didn't take what was sent for 5 s.
	Left, Text, Long, Unanswered, Idle, Crowded, Slow uint64
}

// counters is Counters that several goroutines add to.
type counters struct {
	webTransports, webSockets, received, sent, unread, unsent, tooLarge, noPeer                                  atomic.Uint64
	badRequest, badAddr, badOrigin, limited, full, tooManyFromAddress, tooManyHalfOpen, badUpgrade, tooManyConns atomic.Uint64
	left, text, long, unanswered, idle, crowded, slow                                                            atomic.Uint64
}

func (c *counters) get() Counters {
	return Counters{
		WebTransports: c.webTransports.Load(), WebSockets: c.webSockets.Load(), Received: c.received.Load(), Sent: c.sent.Load(),
		Unread: c.unread.Load(), Unsent: c.unsent.Load(), TooLarge: c.tooLarge.Load(), NoPeer: c.noPeer.Load(),
		BadRequest: c.badRequest.Load(), BadAddr: c.badAddr.Load(), BadOrigin: c.badOrigin.Load(), Limited: c.limited.Load(), Full: c.full.Load(),
		TooManyFromAddress: c.tooManyFromAddress.Load(), TooManyHalfOpen: c.tooManyHalfOpen.Load(), BadUpgrade: c.badUpgrade.Load(),
		TooManyConns: c.tooManyConns.Load(), Left: c.left.Load(), Text: c.text.Load(), Long: c.long.Load(), Unanswered: c.unanswered.Load(),
		Idle: c.idle.Load(), Crowded: c.crowded.Load(), Slow: c.slow.Load(),
	}
}
