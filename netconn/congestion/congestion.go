package congestion

import "time"

// Controller decides how much a connection may send now. Bytes are whole
// datagrams with the network's overhead. Not safe for concurrent use; a controller
// belongs to one connection. No method allocates.
type Controller interface {
	// OnSent says that packet id left; ids rise by one. A controller that is an Emptier hears of some there.
	OnSent(now time.Duration, id int64, bytes int)
	// OnAck says that packet id arrived, rtt after it left (0 when its ack may have waited, or when the peer refused the packet), OnLost that it is lost. One of
	// them is called for each packet, in order of ids. A peer may hold acks back, so
	// many calls may have the same now.
	OnAck(now time.Duration, id int64, bytes int, rtt time.Duration)
	OnLost(now time.Duration, id int64, bytes int)
	// Tick is called once each tick of the game.
	Tick(now time.Duration)
	// Budget is the number of bytes that may be sent now; 0 or less: wait. As long
	// as it is above 0 a whole packet may leave, even one larger than the budget: the debt
	// is taken from what comes.
	Budget(now time.Duration) int
	// Rate is the pace in bytes a second.
	Rate() float64
	// NextDeadline is when Budget rises above 0; ok is false when it is there
	// already, or when only an ack can open it.
	NextDeadline(now time.Duration) (at time.Duration, ok bool)
}

// Emptier is a Controller that counts packets rather than bytes. Packets without bunches, acks and keep-alives, don't wait for
// a turn, so they shall take none: OnSentEmpty is called for them instead of OnSent.
type Emptier interface {
	Controller
	OnSentEmpty(now time.Duration, id int64, bytes int)
}

// seconds is how long bytes take at a rate in bytes a second.
func seconds(bytes, rate float64) time.Duration {
	return time.Duration(bytes / rate * float64(time.Second))
}
