package channel

// Counters is what happened to the bunches of a connection.
type Counters struct {
	Sent, SentReliable, Resent, Merged, Split     uint64 // bunches
	Received, ReceivedReliable                    uint64
	Duplicate                                     uint64 // reliable, had already
	Early                                         uint64 // reliable, kept for its turn
	UnknownChannel, UnknownType, MayNotOpen       uint64 // ignored
	Refused                                       uint64 // packet naked for its sake
	MemoryFull                                    uint64 // refused, as MaxMemory is held
	Ignored                                       uint64 // on a closing or refused channel
	Promoted                                      uint64 // large unreliable bunches made reliable
	ReliableFull, NotSent, QueuedControl, Backlog uint64
	ChannelsOpened, ChannelsClosed                uint64
	Filled                                        uint64 // empty bunches for what a closed channel left unacked
	HalfOpen                                      uint64 // temporary channels given up, as a part of their bunch is lost
}
