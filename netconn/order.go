package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// maxMissingPackets is the largest gap that holds packets back until the end of the tick (Unreal's
// net.PacketOrderMaxMissingPackets). A ReorderWindow ends the wait by itself, so then it may be half of
// the cache.
const maxMissingPackets = 3

func (c *Conn) maxMissing() int64 {
	if c.cfg.ReorderWindow > 0 {
		return int64(max(maxMissingPackets, c.cfg.OrderCache/2))
	}
	return maxMissingPackets
}

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
	since time.Duration // when the packet came that is held longest
}

type cachedPacket struct {
	header packetnotify.Header
	data   []byte
	bits   int
	at     time.Duration
	held   bool
}

// receiveInOrder processes a packet, or holds it back while up to three before it
// are missing.
func (c *Conn) receiveInOrder(r *bitio.Reader, h *packetnotify.Header) {
	delta := c.notify.Delta(h)
	if delta <= 0 && c.late(h) {
		c.Counters.OutOfOrder++
		c.enableOrderCache()
	}
	o := &c.order
	gap := delta - 1
	if o.slots == nil || delta <= 0 || o.held == 0 && (gap == 0 || gap > c.maxMissing()) {
		c.processPacket(r, h)
		return
	}
	if gap == 0 {
		o.start = (o.start + 1) & (len(o.slots) - 1)
		c.processPacket(r, h)
	} else {
		c.holdBack(r, h, int(gap))
	}
	c.flushOrderCache(0)
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
func (c *Conn) holdBack(r *bitio.Reader, h *packetnotify.Header, ahead int) {
	o := &c.order
	beyond := ahead >= len(o.slots)
	if beyond {
		c.flushOrderCache(len(o.slots))
		c.processPacket(r, h)
		return
	}
	p := &o.slots[(o.start+ahead)&(len(o.slots)-1)]
	if p.held {
		c.Counters.CacheDup++
		return
	}
	if o.held == 0 {
		o.since = c.now // times never go back, so later ones are held less long
	}
	early := *r
	bits := r.Remaining()
	n := (bits + 7) / 8
	if n > cap(p.data) {
		p.data = make([]byte, n, c.proto.PacketBits()/8+8)
	}
	p.data = p.data[:n]
	r.ReadBitsTo(p.data, bits)
	p.header, p.bits, p.at, p.held = *h, bits, c.now, true
	o.held++
	c.Counters.Cached++
	if c.cfg.ReorderWindow > 0 {
		c.takeEarly(early, c.notify.InID()+c.notify.Delta(h))
	}
}

// takeEarly hands the reliable bunches of packet id, which is held back, to the channels: they have an
// order of their own. When the packet's turn comes they are duplicates. What is wrong with it is found then.
func (c *Conn) takeEarly(r bitio.Reader, id int64) {
	c.closer.inPacket = true
	defer c.afterPacket()
	closed := c.table.Counters.ChannelsClosed
	defer func() {
		if c.table.Counters.ChannelsClosed != closed && c.out.Len() > 0 && !c.Closed() {
			c.FlushNet() // what was written on them must leave before the ack of their end
		}
	}()
	c.readPacketInfo(&r)
	for r.Remaining() > 0 && !c.Closed() {
		in := &c.in
		if err := c.proto.Read(&r, &in.Header, &in.Data); err != nil {
			return
		}
		if !in.Reliable {
			continue
		}
		in.PacketID = id
		if refused, err := c.table.ReceivedBunch(in); refused || err != nil {
			return
		}
	}
}

// overdue is how many places to process whatever is missing among them, for the sake of packets that
// came at or before a time.
func (o *orderCache) overdue(before time.Duration) (n int) {
	for i := range o.slots {
		if p := &o.slots[(o.start+i)&(len(o.slots)-1)]; p.held && p.at <= before {
			n = i + 1
		}
	}
	return n
}

// flushOrderCache processes what is held in the first n places, and from there up to the first hole.
func (c *Conn) flushOrderCache(n int) {
	o := &c.order
	for ; o.held > 0; n-- {
		p := &o.slots[o.start]
		if !p.held && n <= 0 {
			o.setSince()
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
		c.processPacket(&r, &p.header)
	}
	o.start = 0
}

// setSince finds the packet that is held longest.
func (o *orderCache) setSince() {
	first := true
	for i := range o.slots {
		if p := &o.slots[i]; p.held && (first || p.at < o.since) {
			o.since, first = p.at, false
		}
	}
}
