package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/netconn/congestion"
)

// What may be sent when: one outlet for first sends, resends, copies and probes. The packet window bounds what is in
// flight; the controller's budget bounds the pace. Acks, keep-alives and a connection's last words are small and
// don't wait. Unreliable bunches don't wait either: a game asks IsNetReady before.
//
// The order of a tick: acks, resends oldest first, reliable bunches that wait, copies in what room is left.

// windowMargin keeps a few packets of the window for acks and close.
const windowMargin = 4

// A window above silentWindow is for links with much bandwidth and delay, on which acks come all the time. While none comes for
// silentAfter and two round trips of what is in flight, silentMost in all, nobody may be there: what is sent then is lost, waits in a queue, or costs a peer
// that reads nothing no more than us.
const (
	silentWindow = 1024
	silentAfter  = time.Second
	silentMost   = 3 * time.Second // an ack that waited for the end of a darkness measures no round trip
)

// inFlight is the packets that count against the window. One within the ack history counts a packet until the peer knows that we
// know its fate: it keeps it in its history until then, and one with WaitForFlush refuses what has no room in there.
func (c *Conn) inFlight() int {
	if c.cfg.Protocol.PacketWindow > history.Bits || c.notify.WaitingForFlush() {
		return c.notify.Outstanding()
	}
	return c.notify.Unsettled()
}

// windowFull reports whether one more packet would be too many in flight.
func (c *Conn) windowFull() bool { return c.fills(c.inFlight(), c.cfg.Protocol.PacketWindow) }

// bunchesFull reports whether one more packet with bunches, besides others that follow, would be: as many packets with bunches are in flight as may be, or
// as many of all kinds as the peer's history holds. So acks and keep-alives don't keep bunches out of a small window. So are too many bunches.
func (c *Conn) bunchesFull(others int) bool {
	if c.notesFull() {
		return true
	}
	begun := 0
	if c.out.Len() > 0 {
		begun = 1
	}
	return c.carrying+begun+others >= c.cfg.Protocol.PacketWindow-windowMargin || c.packetsFull(begun+others)
}

// packetsFull reports whether one more packet, besides others, would be too many of all kinds: a window within the ack history bounds those with bunches, and the peer's
// history all.
func (c *Conn) packetsFull(others int) bool {
	return c.fills(c.inFlight()+others, max(c.cfg.Protocol.PacketWindow, history.Bits))
}

// historyFull reports whether the peer's history has no room for one more packet, of a window that is within it, and the ack that makes
// room is awaited. One that is overdue isn't: the peer may not know what it should ack.
func (c *Conn) historyFull() bool {
	return c.cfg.Protocol.PacketWindow <= history.Bits && c.inFlight() >= history.Bits && c.now <= c.overdueAt()
}

// overdueAt is for packets in flight.
func (c *Conn) overdueAt() time.Duration { return c.packetAt(c.first).at + c.patience() }

// fills reports whether n packets in flight, or about to be, are as many as may be in a window.
func (c *Conn) fills(n, window int) bool {
	return n >= window-windowMargin || n >= silentWindow-windowMargin && c.silent()
}

// patience is how long an ack may take.
func (c *Conn) patience() time.Duration {
	return max(silentAfter, min(2*(c.rtt.smoothed+4*c.rtt.variance), silentMost))
}

// silent is for many packets in flight.
func (c *Conn) silent() bool {
	return c.now-max(c.flow.lastFate, c.packetAt(c.first).at) > c.patience()
}

// HasRoom reports whether the packet at hand, or the window, has room for a bunch; see channel.Outlet.
func (o *outlet) HasRoom(bits int) bool {
	c := o.conn()
	if c.Closed() {
		return false
	}
	if !c.bunchesFull(0) || c.closer.lastWords {
		return true
	}
	if c.out.Len() == 0 || c.out.Free() < bits+bunch.MaxHeaderBits || c.notesFull() {
		c.Counters.WindowFull++
		return false
	}
	return true
}

// HasPackets reports whether the window has room for n packets; see channel.Outlet.
func (o *outlet) HasPackets(n int) bool {
	c := o.conn()
	if c.closer.lastWords || !c.bunchesFull(n-1) {
		return true
	}
	c.Counters.WindowFull++
	return false
}

// MaySend reports whether a reliable bunch may be sent now; see channel.Outlet.
func (o *outlet) MaySend(bits int) bool {
	c := o.conn()
	if c.hushed() {
		return false
	}
	if c.out.Len() > 0 && c.out.Free() < bits+bunch.MaxHeaderBits {
		c.filled() // though the budget may end with it
		if c.flow.atOnce {
			return false
		}
	}
	if c.Budget() > 0 {
		return !c.sizeProbeDue() && o.HasRoom(bits)
	}
	return c.pace.share > 0 && o.HasRoom(bits)
}

// Before a close gives up, nothing is sent for hush of unacked bunches that take more memory than hushAbove, so that the path's queue has room for the last words.
const (
	hush      = 250 * time.Millisecond
	hushPart  = 8        // of LingerTimeout, at most
	hushAbove = 32 << 10 // some 25 large ones, or a hundred small ones
)

// hushed reports whether that is now.
func (c *Conn) hushed() bool {
	if !c.endsSoon() {
		return false
	}
	used, _ := c.Table().Unreleased()
	return used > hushAbove
}

// endsSoon reports whether a close is about to give up.
func (c *Conn) endsSoon() bool {
	return c.closer.closing && c.now > c.closer.deadline-min(c.cfg.LingerTimeout/hushPart, hush) && !c.closer.lastWords
}

// hushLeaves is how many bytes Finishers may send then, in packets of all kinds.
const hushLeaves = 6 << 10

// finisherMaySend reports whether what asks IsNetReady may send: at an orderly end only a Finisher does.
func (c *Conn) finisherMaySend() bool {
	if !c.endsSoon() {
		return true
	}
	if c.now >= c.closer.deadline {
		return false // the last words come in this tick
	}
	if c.closer.hushedFrom == 0 {
		c.closer.hushedFrom = c.Counters.BytesSent
	}
	return c.Counters.BytesSent-c.closer.hushedFrom+uint64(c.out.Len()/8) < hushLeaves
}

// pace keeps a share for reliable bunches while others use up the budget.
type pace struct {
	share     float64 // bytes that reliable bunches may send beyond the budget; below 0 what the last of them took before its time
	overdrawn float64 // bytes that others sent beyond it, or while reliable ones waited for it, since the last tick
	at        time.Duration
}

// reliableShare is the part of the rate that reliable bunches get at least.
const reliableShare = 0.25

// tick gives reliable bunches their share of what others took.
func (p *pace) tick(c *Conn) {
	if p.overdrawn == 0 && p.share >= 0 { // the usual case: a share is for what is lacking
		p.at, p.share = c.now, 0
		return
	}
	p.give(c)
}

func (p *pace) give(c *Conn) {
	dt := min(c.now-p.at, time.Second)
	p.at = c.now
	share := reliableShare * c.cfg.Controller.Rate() * dt.Seconds()
	if p.overdrawn == 0 {
		p.share = min(p.share+share, 0)
		return
	}
	if p.share >= 0 {
		share = min(share, p.overdrawn)
	}
	p.share = min(p.share+share, float64(c.proto.PacketBits()/8))
	p.overdrawn = 0
}

// wrote notes the bytes that a bunch took beyond the budget, or an unreliable one before reliable ones that wait, its header and what it began a packet with included. A reliable one that had no
// share is a copy of a channel's open that rides with an unreliable bunch, which would be refused without it: it counts as that.
func (p *pace) wrote(reliable bool, bytes int) {
	if reliable && p.share > 0 {
		p.share -= float64(bytes)
	} else {
		p.overdrawn += float64(bytes)
	}
}

// empty notes a packet without bunches.
func (p *pace) empty(c *Conn) {
	if _, free := c.cfg.Controller.(congestion.Emptier); !free && c.Budget() <= 0 {
		p.overdrawn += float64(c.emptyBytes())
	}
}

// IsNetReady reports whether the connection is below its bandwidth, the packet under
// construction included, and what was queued since bunches that wait were last sent. In a handler that has queued a reliable bunch while others wait it isn't: these go first.
func (c *Conn) IsNetReady() bool {
	if c.flow.atOnce {
		return c.Budget() > 0 && c.finisherMaySend()
	}
	queued := c.channels.Queued() - c.flow.queued
	return c.Budget() > queued && c.finisherMaySend() && (!c.closer.inPacket || queued == 0 || c.Table().Waiting() == 0)
}

// Budget is the number of bytes that may be sent now within the bandwidth.
func (c *Conn) Budget() int {
	budget := c.cfg.Controller.Budget(c.now) - (c.out.Len()+7)/8
	if c.flow.atOnce {
		budget -= c.channels.Queued() - c.flow.queued
	}
	return budget
}
