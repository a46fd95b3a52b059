package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/netconn/handler/coding"
)

// Which packets symbols ride in, and when they leave.

const (
	maxCredit  = 8.0
	tailRepair = 25 * time.Millisecond // without a packet that could carry the symbols owed
)

// headerBytes is the size of a packet's header; see package packetnotify.
func headerBytes(p []byte) int { return 4 * (2 + int(p[0]&15)) }

// addTrailer puts the symbols that are owed, and what was repaired of the peer's packets, behind packet id, which is complete. carries says that it has bunches.
func (c *Conn) addTrailer(packet []byte, id int64, carries bool) (whole []byte, symbols int) {
	k := c.coder
	if !k.peer || c.Closed() {
		return packet, 0
	}
	plain := packet[c.cfg.Headroom:]
	repaired := k.tell.told(c.notify.WrittenAckID())
	rate, covers, size := c.repairs(id), coding.Cover(0), 0
	if rate == 0 {
		k.credit, k.uncovered, k.full = 0, 0, false
	} else {
		if k.enc == nil {
			k.enc = new(coding.Encoder)
		}
		k.enc.Forget(c.notify.OutAckID() + 1)
		covers, size = k.enc.Covers(id, max(c.codingWindow(), k.uncovered))
		if carries || k.alone { // others, such as acks, follow a tick's packet, and would only take the symbols from the next one
			symbols = c.symbolsFor(plain, covers, size)
		}
	}
	whole = packet
	for i := range symbols {
		whole = k.enc.AppendSymbol(whole, id, i, covers, size)
	}
	if symbols > 0 || repaired != 0 {
		whole = coding.AppendEnd(whole, symbols, covers, size, repaired)
	}
	if rate > 0 {
		content := plain[headerBytes(plain):]
		k.enc.Add(id, content, !carries)
		if symbols > 0 {
			k.uncovered = 0
		}
		if carries {
			k.credit, k.uncovered = k.credit+rate, k.uncovered+1
			k.lengths.sent(c.now, len(content))
			k.full = len(plain)+max(size, len(content))+coding.TrailerBytes > c.datagramBytes()
		}
		k.credit = min(k.credit-float64(symbols), maxCredit)
		c.Counters.Repairs += uint64(symbols)
	}
	return whole, symbols
}

// datagramBytes is the largest packet, with its trailer.
func (c *Conn) datagramBytes() int { return (c.proto.PacketBits() + c.proto.HandlerBits) / 8 }

// symbolsFor is how many symbols ride in a packet.
func (c *Conn) symbolsFor(plain []byte, covers coding.Cover, size int) int {
	if covers == 0 || c.coder.credit < 1 || c.Budget() <= len(plain)+c.cfg.PacketOverhead {
		return 0
	}
	room := c.datagramBytes() - len(plain) - coding.TrailerBytes
	return max(0, min(int(c.coder.credit), coding.MaxSymbols, room/size))
}

// sendRepairs sends the symbols owed in packets of their own when those with bunches have no room for them. It waits until all is written: the
// parts of a split unreliable bunch must be in packets that follow each other.
func (c *Conn) sendRepairs() {
	k := c.coder
	for k.full && k.credit >= 1 && c.mayRepair() {
		if !c.sendRepair() {
			break
		}
	}
	k.full = false
}

// mayRepair reports whether a packet may be sent for symbols alone.
func (c *Conn) mayRepair() bool {
	return c.out.Len() == 0 && !c.Closed() && c.hasRoomForRepairs() && c.Budget() > 0
}

// hasRoomForRepairs reports whether neither the window nor bunches that wait keep symbols back, which only an ack may change.
func (c *Conn) hasRoomForRepairs() bool { return !c.windowFull() && c.Table().Waiting() == 0 }

// sendRepair sends an empty packet with the symbols owed; false if it has none.
func (c *Conn) sendRepair() bool {
	before := c.Counters.Repairs
	c.coder.alone = true
	c.startPacket()
	c.sendPacket(0, false)
	c.coder.alone = false
	return c.Counters.Repairs != before
}

// repairTailAt is when the symbols owed go out in a packet of their own because no other follows.
func (c *Conn) repairTailAt() (time.Duration, bool) {
	k := c.coder
	return c.flow.lastSend + tailRepair, k.uncovered > 0 && k.credit >= 1 && c.hasRoomForRepairs()
}

// codingDeadline is when Tick has something to send because of coding, or otherwise.
func (c *Conn) codingDeadline(otherwise time.Duration) time.Duration {
	if at, ok := c.helloAt(); ok {
		otherwise = min(otherwise, at)
	}
	if at, ok := c.repairTailAt(); ok {
		if ready, ok := c.readyAt(); ok {
			otherwise = min(otherwise, max(at, ready))
		}
	}
	return otherwise
}

func (c *Conn) repairTail() {
	if at, ok := c.repairTailAt(); ok && c.now >= at && c.mayRepair() {
		c.coder.uncovered = 0
		c.sendRepair()
	}
}
