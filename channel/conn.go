package channel

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// Conn is what handlers need of their connection. Package netconn satisfies it.
type Conn interface {
	// IsNetReady reports whether the connection is below its bandwidth: what isn't
	// needed now should wait while it is false.
	IsNetReady() bool
	// Budget is the number of bytes that may be sent now within the bandwidth.
	Budget() int
	// FreeBits is the room left in the packet at hand.
	FreeBits() int
	// Now is the time of the call into the connection that is under way.
	Now() time.Duration
	// IsServer reports which end this is.
	IsServer() bool
	// Fail ends the connection for err; ours when local, otherwise the peer broke a rule.
	Fail(err error, local bool)
	// Table is the connection's channels, for handlers that open more.
	Table() *Table
}

// Outlet is what a Machine needs of its connection besides. Package netconn satisfies it.
type Outlet interface {
	// HasRoom reports whether the packet window has room for a bunch with a payload of so many bits.
	HasRoom(bits int) bool
	// MaySend reports whether a reliable one may be sent now: there is room, and the controller allows it.
	MaySend(bits int) bool
	// WriteBunch puts a bunch at the end of the SendBuffer, sending the packet
	// before if there is no room, and returns the id the packet will have. The
	// connection later tells Machine.Acked or Machine.Naked about ch and seq (-1 when
	// unreliable) for that packet, and then Machine.Settled.
	WriteBunch(h *bunch.Header, data []byte, ch *Channel, seq int64) (packetID int64)
	// EndPacket sends the packet at hand, if there is one: what follows is in another.
	EndPacket()
	// ExtendBunch appends to the payload of the bunch written last, if it still
	// ends the SendBuffer and there is room.
	ExtendBunch(data []byte, bits int) bool
	// AllowOpen says whether the peer may open the channel of in now. An error
	// refuses the packet, so that it comes again.
	AllowOpen(in *bunch.In) error
	// ControlClosed says that channel 0 has ended, and with it the connection.
	ControlClosed(reason CloseReason)
}
