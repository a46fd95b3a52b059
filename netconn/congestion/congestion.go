package congestion

import "time"

// Controller decides how much a connection may send now. Bytes are whole
// datagrams with the network's overhead. Not safe for concurrent use; a controller
// belongs to one connection.
type Controller interface {
	// OnSent says that packet id left; ids rise by one.
	OnSent(now time.Duration, id int64, bytes int)
	// OnAck says that packet id arrived, rtt after it left, OnLost that it is lost. One of
	// them is called for each packet, in order of ids.
	OnAck(now time.Duration, id int64, bytes int, rtt time.Duration)
	OnLost(now time.Duration, id int64, bytes int)
	// Tick is called once each tick of the game.
	Tick(now time.Duration)
	// Budget is the number of bytes that may be sent now; 0 or less: wait.
	Budget(now time.Duration) int
	// Rate is the pace in bytes a second.
	Rate() float64
}
