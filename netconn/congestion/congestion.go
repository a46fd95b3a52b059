package congestion

import "time"

// Controller decides how much a connection may send now. Bytes are those of whole
// datagrams, with the network's overhead. A controller belongs to one connection and
// isn't safe for concurrent use. No method allocates.
type Controller interface {
	// OnSent says that packet id left. Ids rise by one. For an Emptier, packets without
	// bunches call OnSentEmpty instead.
	OnSent(now time.Duration, id int64, bytes int)
	// OnAck says that packet id arrived; OnLost says that it is lost. One of them is called
	// for each packet, in order of ids. rtt is the round trip time: 0 when the ack may have
	// waited, or when the peer refused the packet. A peer may hold acks back, so many calls
	// may have the same now.
	OnAck(now time.Duration, id int64, bytes int, rtt time.Duration)
	OnLost(now time.Duration, id int64, bytes int)
	// Tick is called once each tick of the game.
	Tick(now time.Duration)
	// Budget returns the number of bytes that may be sent now; at 0 or less, wait. While it
	// is above 0 a whole packet may leave, even one larger than the budget: later credit
	// pays for the rest.
	Budget(now time.Duration) int
	// Rate returns the rate in bytes a second.
	Rate() float64
	// NextDeadline returns when Budget rises above 0. ok is false when it is above 0
	// already, or when only an ack can raise it.
	NextDeadline(now time.Duration) (at time.Duration, ok bool)
}

// Emptier is a Controller that counts packets rather than bytes. OnSentEmpty is called instead of OnSent for packets
// without bunches, which are acks and keep-alives. They don't wait for a turn, so they mustn't use one up.
type Emptier interface {
	Controller
	OnSentEmpty(now time.Duration, id int64, bytes int)
}

// Returner is a Controller that is told how long what comes from the peer waits in the queue of the way back, which its rate doesn't fill. OnReturn is called
// before the OnAck of the acks that waited so long; their rtt includes it.
type Returner interface {
	Controller
	OnReturn(wait time.Duration)
}

// PeerWaiter is a Controller that is told while bunches wait until the peer has room for them. Credit is left then though the application wants more, so that loss counts as it does where
// all credit is used.
type PeerWaiter interface {
	Controller
	OnPeerFull()
}

// seconds is how long bytes take at a rate in bytes a second.
func seconds(bytes, rate float64) time.Duration {
	return time.Duration(bytes / rate * float64(time.Second))
}

// whole is bytes as an int, 1 GiB at most either way, so that it and what is added to it fit 32 bits too.
func whole(bytes float64) int {
	switch { // min and max would look for NaN
	case bytes > 1<<30:
		return 1 << 30
	case bytes < -1<<30:
		return -1 << 30
	}
	return int(bytes)
}
