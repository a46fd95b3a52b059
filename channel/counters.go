package channel

// Counters counts a connection's bunches.
type Counters struct {
	Sent, SentReliable, Resent, Merged, Split     uint64 // bunches
	Received, ReceivedReliable                    uint64
	Duplicate                                     uint64 // reliable, received before
	Early                                         uint64 // reliable, kept until their turn
	UnknownChannel, UnknownType, MayNotOpen       uint64 // ignored
	NoHandler                                     uint64 // channels opened by the peer whose Type has no Accept, or whose Accept returned nil
	Refused                                       uint64 // their packets were naked, so that they are sent again
	MemoryFull                                    uint64 // times that Hold, or the table, had no room; a handler may ask several times for one message
	Ignored                                       uint64 // on a closing or refused channel
	Promoted                                      uint64 // large unreliable bunches made reliable
	ReliableFull, NotSent, QueuedControl, Backlog uint64
	ChannelsOpened, ChannelsClosed                uint64
	Filled                                        uint64 // empty bunches in place of those that a closed channel left unacked
	HalfOpen                                      uint64 // temporary channels dropped because a part of their bunch was lost
}
