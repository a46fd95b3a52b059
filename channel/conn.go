package channel

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
)

// Conn is what handlers need of their connection. Package netconn implements it.
type Conn interface {
	// IsNetReady reports whether the connection is below its bandwidth. While it is false, send only what is urgent. It is hardly ever true while reliable bunches wait
	// that the bandwidth doesn't carry: these go first.
	IsNetReady() bool
	// Budget is the number of bytes that may be sent now within the bandwidth.
	Budget() int
	// FreeBits is the room left in the current packet. It may be more than the largest bunch; see Table.SingleBits.
	FreeBits() int
	// Now is the time that the current call into the connection was given.
	Now() time.Duration
	// IsServer reports which end this is.
	IsServer() bool
	// Fail ends the connection with err. local says that the error is this end's; otherwise the peer broke a rule.
	Fail(err error, local bool)
	// Table is the connection's channels, for handlers that open more.
	Table() *Table
}

// Outlet is what a Machine needs of its connection in addition. Package netconn implements it; see Machine for why it is exported.
type Outlet interface {
	// HasRoom reports whether the packet window has room for a bunch with a payload of this size.
	HasRoom(bits int) bool
	// HasPackets reports whether the packet window has room for n more packets with bunches.
	HasPackets(n int) bool
	// MaySend reports whether a reliable bunch of this size may be sent now: there is room, and the rate controller
	// allows it.
	MaySend(bits int) bool
	// WriteBunch appends a bunch to the SendBuffer, after sending the current packet if there is no room. It returns the
	// id that the bunch's packet will have. For that packet the connection later calls Machine.Acked or Machine.Naked
	// with ch and seq (-1 when unreliable), and then Machine.Settled.
	WriteBunch(h *bunch.Header, data []byte, ch *Channel, seq int64) (packetID int64)
	// PacketID is the id that the current packet will have, or the next one if there is none.
	PacketID() int64
	// Heard is the id of the newest packet of the peer's, the one that is being processed included.
	Heard() int64
	// EndPacket sends the current packet, if there is one.
	EndPacket()
	// ExtendBunch appends to the payload of the last bunch, if it still ends the SendBuffer and there is room.
	ExtendBunch(data []byte, bits int) bool
	// MayMerge reports whether a reliable bunch may become so large by merging. Larger ones may have no copies.
	MayMerge(bits int) bool
	// AllowOpen returns whether the peer may open the channel of in now. An error refuses the packet, which is then sent
	// again.
	AllowOpen(in *bunch.In) error
	// CloseInOrder begins the end of the connection, as the game has closed channel 0: that waits until what was sent on all channels is acked.
	CloseInOrder()
	// ControlClosed says that channel 0, and with it the connection, has ended.
	ControlClosed(reason CloseReason)
}
