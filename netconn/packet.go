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
	if !info {
		c.out.WriteBool(false)
		c.infoPos = 0
		return
	}
	c.infoPos = c.out.Len() + 1
	c.out.WriteBits(1, 1+jitterClockBits+1) // no server frame time
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
	v := r.ReadBits(jitterClockBits + 1)
	if v>>jitterClockBits != 0 && !c.cfg.Server {
		r.ReadUint8()
	}
	return int(v & (1<<jitterClockBits - 1)), true
}
