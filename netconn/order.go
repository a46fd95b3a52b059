package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// maxMissingPackets is the largest gap that holds packets back until the end of the tick (Unreal's
// net.PacketOrderMaxMissingPackets). A window ends the wait by itself, so then it may be half of
// the cache.
const maxMissingPackets = 3

func (c *Conn) maxMissing() int64 {
	if c.reorderWindow() > 0 || c.ticksSlowly() {
		return int64(max(maxMissingPackets, c.cfg.OrderCache/2))
	}
	return maxMissingPackets
}

// orderCache holds packets back while an earlier one is late, so that the late one isn't taken for lost. It is made when
// the first late packet shows that the network reorders (Unreal's net.PacketOrderCorrectionEnableThreshold of 1).
//
// Invariant: packet id is at slot id%len. All held packets are newer than the newest processed one, and at most len
// ahead of it.
type orderCache struct {
	slots  []cachedPacket // smallOrderCache of them at first, and up to Config.OrderCache while packets are further ahead
	held   int
	since  time.Duration // arrival time of the packet held longest
	late   lateness
	ticks  ticks
	cached uint64 // Counters.Cached when the rings were last looked at
}

type cachedPacket struct {
	id     int64
	header packetnotify.Header
	data   []byte
	bits   int
	at     time.Duration
	held   bool
}

func (o *orderCache) at(id int64) *cachedPacket { return &o.slots[id&int64(len(o.slots)-1)] }

// lateness measures how late overtaken packets arrive, and whether waiting for them pays: on a path that loses much and reorders little,
// nearly all missing packets never arrive.
type lateness struct {
	window time.Duration // the wait that would have been long enough
	seen   time.Duration // when a packet was last about that late
	// came and lost count missing packets that arrived in time, and those that didn't. Both are halved regularly.
	came, lost int
	gaps       *[maxGaps]gap // packets given up, by id; nil until the first
}

type gap struct {
	id int64
	at time.Duration // 0: it came after all, or there was none
}

// ticks measures how far apart receive ticks are while packets are held. While none are, who has nothing to do may sleep until Conn.NextDeadline.
type ticks struct {
	at, gap time.Duration // when the last one ended, and how long after the one before
	kept    bool          // packets have been held since then
	apart   time.Duration // 0 until packets were held from one to the next
}

// end notes the end of a receive tick. The shorter of two gaps counts, so that a single hitch changes nothing.
func (t *ticks) end(now time.Duration) {
	gap := now - t.at
	if gap == 0 { // the same tick, which reads more than once
		return
	}
	if t.kept || gap < t.apart {
		t.apart = min(gap, t.gap)
	}
	t.at, t.gap = now, gap
}

// What lateness remembers, and the window that it asks for.
const (
	maxGaps      = 64
	maxLateness  = 50 * time.Millisecond
	lateMargin   = 4 // a quarter more than was measured
	latenessLife = 10 * time.Second
	latenessSpan = 64 // missing packets that the counts span
	lateWorth    = 4  // lost packets that are waited for in vain, for each that comes
	// slowTicks is how far apart receive ticks are when nothing is held from one to the next. What is behind a lost packet would wait for much longer
	// than the window. So would its ack, and the peer takes that for a queue.
	slowTicks = 3 * maxLateness
)

// gap notes that packet id is missing.
func (l *lateness) gap(id int64, now time.Duration) {
	if l.gaps == nil {
		l.gaps = new([maxGaps]gap)
	}
	g := &l.gaps[id&(maxGaps-1)]
	if g.at > 0 {
		l.count(&l.lost) // it never came
	}
	*g = gap{id, max(now, 1)}
}

// late notes that packet id came after it was given up.
func (l *lateness) late(id int64, now time.Duration) {
	if l.gaps == nil {
		return
	}
	if g := &l.gaps[id&(maxGaps-1)]; g.id == id && g.at > 0 {
		l.filled(now, now-g.at)
		g.at = 0
	}
}

// filled notes that a missing packet came, d after the first that overtook it.
func (l *lateness) filled(now, d time.Duration) {
	d += d/lateMargin + time.Millisecond
	switch {
	case d > maxLateness: // waiting that long for it costs more than it brings
		l.count(&l.lost)
		return
	case d >= l.window || now-l.seen > latenessLife:
		l.window, l.seen = d, now
	case d >= l.window/2: // so far it is right
		l.seen = now
	}
	l.count(&l.came)
}

func (l *lateness) count(n *int) {
	if *n++; l.came+l.lost >= latenessSpan {
		l.came, l.lost = l.came/2, l.lost/2
	}
}

// reorderWindow is how long a packet may be held back now.
func (c *Conn) reorderWindow() time.Duration {
	return max(c.ordinaryWindow(), c.coder.holds(c.now))
}

// ordinaryWindow is how long one may be held back for a packet that comes late.
func (c *Conn) ordinaryWindow() time.Duration {
	switch l := &c.order.late; {
	case c.cfg.ReorderWindow > 0:
		return c.cfg.ReorderWindow
	case c.cfg.ReorderWindow < 0 || lateWorth*l.came <= l.lost || c.now-l.seen > latenessLife:
		return 0
	default:
		return l.window
	}
}

// ticksSlowly reports whether packets are held back until the end of the receive tick and no longer, however late others are.
func (c *Conn) ticksSlowly() bool {
	return c.order.ticks.apart > slowTicks && c.cfg.ReorderWindow == 0 && c.coder == nil
}

// receiveInOrder processes a packet, or holds it back while a few before it
// are missing.
func (c *Conn) receiveInOrder(r *bitio.Reader, h *packetnotify.Header) {
	delta := c.notify.Delta(h)
	o := &c.order
	if delta <= 0 && c.notify.Late(h) {
		c.Counters.OutOfOrder++
		o.late.late(c.notify.ID(h), c.now)
		c.enableOrderCache()
	}
	gap := delta - 1
	if gap > 0 && c.coder.holds(c.now) > 0 {
		c.enableOrderCache()
	}
	if o.slots == nil || delta <= 0 || o.held == 0 && (gap == 0 || gap > c.maxMissing()) {
		c.processPacket(r, h)
		return
	}
	switch {
	case gap == 0:
		if o.held > 0 && !isRepaired(h) {
			o.late.filled(c.now, c.now-o.since)
		}
		c.processPacket(r, h)
	case gap >= int64(len(o.slots)) && !c.growOrderCache(gap):
		c.flushOrderCache(c.notify.InID() + int64(len(o.slots)))
		c.processPacket(r, h)
	default:
		c.holdBack(r, h, c.notify.InID()+delta)
	}
	c.flushOrderCache(c.notify.InID())
}

func (c *Conn) enableOrderCache() {
	if c.order.slots == nil && c.cfg.OrderCache > 0 {
		c.order.slots = make([]cachedPacket, min(c.cfg.OrderCache, smallOrderCache))
	}
}

// smallOrderCache is how many packets may be held back at first, Unreal's number. A fast path has more in flight while one
// is late.
const smallOrderCache = 32

// growOrderCache makes room for a packet that has a gap before it, unless that is more than Config.OrderCache.
func (c *Conn) growOrderCache(gap int64) bool {
	o := &c.order
	n := int64(len(o.slots))
	for n <= gap {
		n *= 2
	}
	if n > int64(c.cfg.OrderCache) {
		return false
	}
	old := o.slots
	o.slots = make([]cachedPacket, n)
	for i := range old {
		if old[i].held {
			*o.at(old[i].id) = old[i]
		}
	}
	return true
}

// holdBack stores packet id.
func (c *Conn) holdBack(r *bitio.Reader, h *packetnotify.Header, id int64) {
	o := &c.order
	p := o.at(id)
	if p.held {
		c.Counters.CacheDup++
		return
	}
	if o.held == 0 {
		o.since = c.now // times never go back, so later ones are held less long
	} else if overtook, ok := o.overtook(id); ok && !isRepaired(h) {
		o.late.filled(c.now, c.now-overtook)
	}
	early := *r
	bits := r.Remaining()
	n := (bits + 7) / 8
	if n > cap(p.data) {
		p.data = make([]byte, n, max(n, c.basePacket()))
	}
	p.data = p.data[:n]
	r.ReadBitsTo(p.data, bits)
	p.id, p.header, p.bits, p.at, p.held = id, *h, bits, c.now, true
	o.held++
	c.Counters.Cached++
	if c.reorderWindow() > 0 {
		c.takeEarly(early, id, false)
	}
}

// takeEarly hands the reliable bunches of packet id, which is held back, to the channels, which have an order of their
// own. In the packet's turn they are duplicates. Errors in the packet are found then, and a close of the connection
// takes effect then, so that the packet is acked. With late the packet was given up and has been repaired: its turn is over, and errors
// in it are ignored.
func (c *Conn) takeEarly(r bitio.Reader, id int64, late bool) {
	c.closer.inPacket, c.closer.whole, c.closer.early = true, false, id
	defer c.afterPacket()
	closed := c.channels.Counters.ChannelsClosed
	c.takeReliable(&r, id, late)
	if c.channels.Counters.ChannelsClosed != closed && c.out.Len() > 0 && !c.Closed() {
		c.FlushNet() // what was written on them must leave before the ack of their end
	}
	c.closer.whole = true
}

func (c *Conn) takeReliable(r *bitio.Reader, id int64, late bool) {
	c.readPacketInfo(r)
	for r.Remaining() > 0 && !c.Closed() && !c.closer.controlGone {
		in := &c.in
		if err := c.proto.Read(r, &in.Header, &in.Data); err != nil {
			return
		}
		if !in.Reliable {
			continue
		}
		in.PacketID = id
		var refused bool
		var err error
		if late {
			refused, err = c.channels.ReceivedLate(in)
		} else {
			refused, err = c.channels.ReceivedEarly(in)
		}
		if refused || err != nil {
			return
		}
	}
}

// flushOverdue processes held packets that have waited long enough, whatever is missing.
func (c *Conn) flushOverdue() {
	if o := &c.order; o.held > 0 || len(o.slots) > smallOrderCache { // seldom
		c.flushHeld()
	}
}

func (c *Conn) flushHeld() {
	o := &c.order
	window := c.reorderWindow()
	if o.held == 0 && window == 0 {
		o.slots = make([]cachedPacket, smallOrderCache) // what was late for a while isn't any more
	}
	before := c.now - window
	if c.ticksSlowly() {
		before = c.now
	}
	if o.held == 0 || o.since > before {
		return
	}
	until := c.notify.InID()
	for i := range o.slots {
		if p := &o.slots[i]; p.held && p.at <= before {
			until = max(until, p.id)
		}
	}
	c.flushOrderCache(until)
}

// flushOrderCache processes held packets up to packet until, and further up to the first gap.
func (c *Conn) flushOrderCache(until int64) {
	o := &c.order
	held := o.held
	for o.held > 0 && !c.Closed() {
		next := c.nextHeld()
		if next.id > until && next.id != c.notify.InID()+1 {
			break
		}
		next.held = false
		o.held--
		var r bitio.Reader
		r.Reset(next.data, next.bits)
		c.processPacket(&r, &next.header)
	}
	if o.held < held {
		o.setSince()
	}
	if o.held == 0 {
		c.channels.InTurn()
	}
}

// nextHeld is the oldest held packet, of which there is one. Those that became stale while the peer's packets were refused have slots too, whatever their ids.
func (c *Conn) nextHeld() *cachedPacket {
	for id := c.notify.InID() + 1; ; id++ {
		if p := c.order.at(id); p.held {
			return p
		}
	}
}

// overtook is when the first held packet newer than id arrived, if there is one.
func (o *orderCache) overtook(id int64) (at time.Duration, ok bool) {
	for i := range o.slots {
		if p := &o.slots[i]; p.held && p.id > id && (!ok || p.at < at) {
			at, ok = p.at, true
		}
	}
	return at, ok
}

// setSince finds the packet that is held longest.
func (o *orderCache) setSince() {
	first := o.held > 0
	for i := range o.slots {
		if p := &o.slots[i]; p.held && (first || p.at < o.since) {
			o.since, first = p.at, false
		}
	}
}
