package channel

import (
	"math"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch"
)

// What a peer can make this end hold is counted in bytes against Config.MaxMemory, as the allocator rounds it: half of
// it is for what it sent, half for what it doesn't ack. So neither can starve the other. The last controlReserve bytes of the second half
// are the control channel's: however much the game has sent, the peer can be told why its connection is closed.
const (
	outCost     = 2*int(unsafe.Sizeof(outRec{})) + 2*int(unsafe.Sizeof(waitingBunch{})) + noteCost
	noteCost    = 32                                                       // the connection's of the packet that carries it
	channelCost = int(unsafe.Sizeof(Channel{})+unsafe.Sizeof(rare{})) + 64 // and its handler's word or two
	earlyCost   = int(unsafe.Sizeof(early{}))
	queuedCost  = 2 * int(unsafe.Sizeof(bunch.Out{}))
	pageCost    = int(unsafe.Sizeof(page{}))
	openRoom    = 4096 // counted until a channel's open is handled, for what its handler counts in Opened, when it's too late to refuse the bunch

	controlReserve = 16 << 10 // a reason of 4 KiB takes 10
)

// Held is the number of bytes that count against Config.MaxMemory now.
func (t *Table) Held() int { return t.held + t.heldOut }

// Unreleased is the bytes that are held for the peer until it acks them, and the most that the game's bunches may take of that.
func (t *Table) Unreleased() (used, most int) { return t.heldOut, t.maxHeldOut(1) }

// fits reports whether n more bytes of the peer's may be held. They leave room for the parts of payloads that have begun: a part whose turn
// it is can't be refused, as others wait for it.
func (t *Table) fits(n int) bool {
	half := t.cfg.MaxMemory / 2
	return t.held-t.joining+n <= half-t.largeRoom() && t.held+n <= half-t.rest()
}

// handlersShare is the part of what fits allows that early bunches leave to handlers and to channels that open: they come again, while what a handler is given may
// have been acked.
const handlersShare = 4

// fitsEarly reports whether n more bytes of early bunches may be held. A few need to leave free only as much as they take, so that all channels go on at their pace while
// handlers hold most of the memory.
func (t *Table) fitsEarly(n int) bool {
	return t.fits(n+t.maxHold()/handlersShare) || t.early+n <= min(48<<10, t.maxHold()/8) && t.fits(n+t.early+n)
}

func (t *Table) maxHold() int { return t.cfg.MaxMemory/2 - t.largeRoom() }

// holdEarly counts n bytes of early bunches.
func (t *Table) holdEarly(n int) {
	t.held += n
	t.early += n
}

// SetPeerMemory replaces Config.PeerMemory, as the peer has told its MaxMemory. Less than any may have counts as the least, 256 KiB.
func (m *Machine) SetPeerMemory(bytes uint32) {
	m.cfg.PeerMemory = int(min(max(bytes, minMaxMemory), math.MaxInt32))
}

// Reserve takes n bytes from what may be held for the peer: what the connection itself remembers of the packets in flight.
func (m *Machine) Reserve(n int) { m.reserved = n }

// maxHeldOut is the most that may be held for the peer, as bunches of the channel at index count it.
func (t *Table) maxHeldOut(index uint32) int {
	most := t.cfg.MaxMemory/2 - t.reserved
	if index == 0 {
		return most
	}
	return most - controlReserve
}

// fitsOut reports whether n more bytes for the peer may be held in parts, on the channel at index.
func (t *Table) fitsOut(index uint32, n, parts int) bool {
	return t.heldOut+n+parts*(outCost+1<<minClass) <= t.maxHeldOut(index)
}

// Hold counts n bytes that the channel's handler keeps because of what the peer sent. On ErrMemory nothing
// is counted, and the handler must not keep them: it refuses the peer's data, by Refuse or in its own way, or closes. The
// end of the channel releases what is left.
func (ch *Channel) Hold(n int) error {
	t := ch.table
	if n < 0 || n > math.MaxInt32/2 || ch.closed {
		return ErrMemory
	}
	if !t.fits(n) {
		t.Counters.MemoryFull++
		return ErrMemory
	}
	t.held += n
	ch.handlerHeld += int32(n)
	return nil
}

// Refuse reports the packet of the current unreliable bunch to the peer as lost, and the peer's handler gets ReceivedNak. Call it in
// ReceivedBunch, when the handler has no memory for the bunch and its peer repeats lost data. The packet's other bunches are still
// delivered. For a reliable bunch Refuse does nothing.
func (ch *Channel) Refuse() { ch.table.refuses = true }

// MaxHold is the most that the handlers of all channels together can count with Hold.
func (ch *Channel) MaxHold() int { return ch.table.maxHold() }

// Release ends the count of n bytes that Hold counted.
func (ch *Channel) Release(n int) {
	n = min(max(n, 0), int(ch.handlerHeld))
	ch.handlerHeld -= int32(n)
	ch.table.held -= n
}

// HoldSent counts n bytes that the channel's handler keeps of what it sent until the peer acks it, in the half of MaxMemory that is for that. On
// ErrMemory nothing is counted, and the handler must send no more for now. The end of the channel releases what is left.
func (ch *Channel) HoldSent(n int) error {
	t := ch.table
	if n < 0 || n > math.MaxInt32/2 || ch.closed || t.heldOut+n > t.maxHeldOut(ch.index) {
		return ErrMemory
	}
	ch.needRare().keptSent += int32(n)
	t.heldOut += n
	return nil
}

// ReleaseSent ends the count of n bytes that HoldSent counted.
func (ch *Channel) ReleaseSent(n int) {
	if ch.rare == nil {
		return
	}
	n = min(max(n, 0), int(ch.rare.keptSent))
	ch.rare.keptSent -= int32(n)
	ch.table.heldOut -= n
	ch.dropRare()
}
