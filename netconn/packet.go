package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const (
	jitterClockBits = 10
	// jitterNone is the jitter clock of a packet with nothing to compare to: the
	// packet before was sent a second ago or more.
	jitterNone = 1023
)

// writePacketInfo writes the packet info bit, and behind it room for the jitter
// clock if this is the first packet of the tick.
func (c *Conn) writePacketInfo() {
	info := !c.cfg.NoPacketInfo && !c.flow.inTick
	c.out.WriteBool(info)
	if info {
		c.infoPos = c.out.Len()
		c.out.WriteBits(0, jitterClockBits)
		c.out.WriteBool(false) // no server frame time
	} else {
		c.infoPos = 0
	}
}

// patchPacketInfo fills in the jitter clock at the time of sending.
func (c *Conn) patchPacketInfo() {
	if c.infoPos == 0 {
		return
	}
	clock := uint64(c.now % time.Second / time.Millisecond)
	if c.now-c.flow.lastSend >= time.Second {
		clock = jitterNone
	}
	c.out.PatchBits(c.infoPos, clock, jitterClockBits)
}

// readPacketInfo reads the peer's jitter clock, if it is there. The frame time byte is there only in
// packets of a server: a client sets the bit to ask for it.
func (c *Conn) readPacketInfo(r *bitio.Reader) (clock int, ok bool) {
	if !r.ReadBool() {
		return 0, false
	}
	clock = int(r.ReadBits(jitterClockBits))
	if r.ReadBool() && !c.cfg.Server {
		r.ReadUint8()
	}
	return clock, true
}
