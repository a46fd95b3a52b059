package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// maxMissingPackets is the largest gap that holds packets back (Unreal's
// net.PacketOrderMaxMissingPackets).
const maxMissingPackets = 3

// orderCache holds packets back for ones that come late, so that these aren't
// taken for lost. It is made when the first late packet shows that the network
// reorders (Unreal's net.PacketOrderCorrectionEnableThreshold of 1).
//
// Invariant: slot i holds the packet with sequence base+1+i, where base is the
// newest sequence processed; start is the slot of base+1.
type orderCache struct {
	slots []cachedPacket
	start int
	held  int
	since time.Duration // when holding back began
}

type cachedPacket struct {
	header packetnotify.Header
	data   []byte
	bits   int
	held   bool
}

// receiveInOrder processes a packet, or holds it back while up to three before it
// are missing.
func (c *Conn) receiveInOrder(r bitio.Reader, h *packetnotify.Header) {
	delta := c.notify.Delta(h)
	if delta <= 0 && c.late(h) {
		c.Counters.OutOfOrder++
		c.enableOrderCache()
	}
	o := &c.order
	gap := delta - 1
	if o.slots == nil || delta <= 0 || o.held == 0 && (gap == 0 || gap > maxMissingPackets) {
		c.processPacket(r, h)
		return
	}
	if gap == 0 {
		o.start = (o.start + 1) & (len(o.slots) - 1)
		c.processPacket(r, h)
	} else {
		c.holdBack(r, h, int(gap))
	}
	c.flushOrderCache(false)
}

// late reports whether h is a packet older than the newest, rather than a
// duplicate of one we had.
func (c *Conn) late(h *packetnotify.Header) bool { return c.notify.Late(h) }

func (c *Conn) enableOrderCache() {
	if c.order.slots == nil && c.cfg.OrderCache > 0 {
		c.order.slots = make([]cachedPacket, c.cfg.OrderCache)
	}
}

// holdBack keeps a packet. One beyond the cache takes its last place, which makes
// the flush give up waiting.
func (c *Conn) holdBack(r bitio.Reader, h *packetnotify.Header, ahead int) {
	o := &c.order
	beyond := ahead >= len(o.slots)
	if beyond {
		c.flushOrderCache(true)
		c.processPacket(r, h)
		return
	}
	p := &o.slots[(o.start+ahead)&(len(o.slots)-1)]
	if p.held {
		c.Counters.CacheDup++
		return
	}
	if o.held == 0 {
		o.since = c.now
	}
	bits := r.Remaining()
	n := (bits + 7) / 8
	if n > cap(p.data) {
		p.data = make([]byte, n, c.proto.PacketBits()/8+8)
	}
	p.data = p.data[:n]
	r.ReadBitsTo(p.data, bits)
	p.header, p.bits, p.held = *h, bits, true
	o.held++
	c.Counters.Cached++
}

// flushOrderCache processes what is held up to the first hole, or all of it.
func (c *Conn) flushOrderCache(all bool) {
	o := &c.order
	for o.held > 0 {
		p := &o.slots[o.start]
		if !p.held && !all {
			return
		}
		o.start = (o.start + 1) & (len(o.slots) - 1)
		if !p.held {
			continue
		}
		p.held = false
		o.held--
		var r bitio.Reader
		r.Reset(p.data, p.bits)
		c.processPacket(r, &p.header)
	}
	o.start = 0
}
