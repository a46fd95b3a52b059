package netconn

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// The packet size is found as in RFC 8899: a connection that fills packets of the base size, Protocol.Bunch.MaxPacket, tries larger ones, up
// to Config.LargestPacket. A probe has nothing in it that could be missed. Other packets are never larger than a probe that has arrived, and each
// bunch fits a packet of the base size. So when the path turns out to be narrower, whatever was lost goes again in packets of the base size.
const (
	searchFull  = 16               // full packets before a search begins
	searchTries = 3                // lost probes of a size before a smaller one is tried, at least
	searchStep  = 16               // bytes between a size that arrives and one that doesn't at which a search ends
	searchAgain = 10 * time.Minute // after a search, as the path may have become wider
	searchSoon  = time.Second      // after larger packets were lost; twice as long each time that happens within searchHeld
	searchHeld  = time.Minute
	// searchSilence and two round trips without a fate are too long.
	searchSilence = 100 * time.Millisecond
	tryGap        = 200 * time.Millisecond // after a lost probe, times how many were lost
	// So many are lost in a row because of their size, where they are lost for other reasons with that probability: probes, of which there are few,
	// and others.
	probeChance = 1e-3
	otherChance = 1e-6
	// largeLoss is the loss of packets above the base size, averaged over largeSpan of them, from which on that size is better, or as good.
	largeLoss = 1.0 / 3
	largeSpan = 128
	// takenBytes is what an end takes of others at least, whether it tries larger packets itself or not.
	takenBytes = 1500
)

// search is the state of a connection that has filled packets.
//
// Invariant: the base size <= size < failed, unless failed is 0.
type search struct {
	size   int           // bytes that a packet may have
	failed int           // the smallest size that doesn't arrive, 0 none
	full   int           // packets that were full since the last search
	probe  int64         // the probe in flight, or bunch.NoPacket
	bytes  int           // its size
	tries  int           // probes of that size that were lost
	at     time.Duration // when the next probe may leave
	wait   time.Duration // before the next search when larger packets get lost
	raised time.Duration // when size last rose
	since  time.Duration // when the first packet above the base size left since the newest fate; 0 none
	row    int           // packets above the base size that were lost in a row
	loss   float64       // the measured loss before them
	run    int           // those that were lost since one of their size, or larger, arrived, while smaller ones may have
	least  int           // the smallest of the run
	most   int           // the largest that has arrived since the run began: that smaller ones are lost is chance
	above  float64       // the loss of packets above the base size
}

// basePacket is the size in bytes that needs no probe.
func (c *Conn) basePacket() int { return c.proto.PacketBytes() }

// mostReceived is the largest packet that is taken from the peer.
func (c *Conn) mostReceived() int {
	if c.coder != nil || c.cfg.Protocol.Unreal {
		return c.basePacket()
	}
	return max(c.basePacket(), c.cfg.LargestPacket, takenBytes)
}

// packetBytes is the size of the largest packet that may leave now. While tail probes find out what was lost that is the base size, and when larger
// packets leave and no fate comes: where all packets are too large, nothing tells of their loss.
func (c *Conn) packetBytes() int {
	s := c.search
	if s == nil || c.flow.probes > 0 || s.since > 0 && c.now-s.since > searchSilence+2*(c.rtt.smoothed+4*c.rtt.variance) {
		return c.basePacket()
	}
	return s.size
}

// sizeSent notes that a packet leaves.
func (c *Conn) sizeSent(bytes int) {
	if s := c.search; s != nil && s.since == 0 && bytes > c.basePacket() {
		s.since = c.now
	}
}

// emptyRoom is the bits for bunches in an empty packet of so many bytes, whatever its header has.
func (c *Conn) emptyRoom(bytes int) int {
	return 8*bytes - c.proto.HandlerBits - bunch.MaxPacketHeaderBits - 1
}

// filled notes that a packet had no room for a bunch.
func (c *Conn) filled() {
	if c.cfg.LargestPacket == 0 {
		return
	}
	if c.search == nil {
		c.search = &search{size: c.basePacket(), probe: bunch.NoPacket, wait: searchSoon}
	}
	c.search.full++
}

// trySize sends a probe when one is due and the controller allows it.
func (c *Conn) trySize() {
	s := c.search
	if s == nil || s.full < searchFull || s.probe != bunch.NoPacket || c.now < s.at || c.out.Len() > 0 || c.flow.probes > 0 ||
		c.closer.closing || c.closer.lastWords || c.Closed() || c.windowFull() || !c.IsNetReady() {
		return
	}
	ch := c.ackedChannel()
	if ch == nil {
		return
	}
	if s.tries == 0 {
		s.bytes = c.cfg.LargestPacket
		if s.failed > 0 {
			s.bytes = (s.size + s.failed) / 2
		}
	}
	c.sendBuffer.grow(&c.cfg)
	s.probe = c.notify.OutID()
	c.Counters.SizeProbes++
	c.startPacketOf(s.bytes)
	c.sendPadded(ch, s.bytes)
}

// grow makes room for packets of every size.
func (s *sendBuffer) grow(cfg *Config) {
	if n := cfg.Headroom + cfg.LargestPacket; len(s.buf) < n {
		s.buf, s.scratch = make([]byte, n, n+cfg.Tailroom), nil
	}
}

// sendPadded sends the packet that was begun with so many bytes, filled with empty unreliable bunches, which no handler gets, on a channel that the
// peer has. It has some bytes less where there is no room, or a bunch's header more where there is.
func (c *Conn) sendPadded(ch *channel.Channel, bytes int) {
	h := bunch.Header{ChIndex: ch.Index()}
	for room := true; room && (c.out.Len()+7)/8 < bytes; {
		room = c.appendBunch(&h, nil)
	}
	c.pendingProbe = true
	c.sendPacket(0, false)
}

// isSizeProbe reports whether packet id is the probe in flight. Its loss says nothing of what the path carries in a second. That of other packets does,
// also when it makes them too large: a full queue loses many in a row as well.
func (c *Conn) isSizeProbe(id int64) bool { return c.search != nil && id == c.search.probe }

// sizeArrived notes that packet id has arrived.
func (c *Conn) sizeArrived(id int64, p *sentPacket) {
	s := c.search
	if s == nil {
		return
	}
	s.since = 0
	switch {
	case id == s.probe:
		s.probe, s.tries, s.row, s.run, s.most, s.at, s.raised = bunch.NoPacket, 0, 0, 0, 0, c.now, c.now
		s.size = max(s.size, int(p.bytes)) // a bound right above the base size leaves no room for larger packets
		c.channels.SetPacketBits(c.emptyRoom(s.size))
		c.settleSize()
	case int(p.bytes) > c.basePacket():
		s.above -= s.above / largeSpan
		s.row, s.most = 0, max(s.most, int(p.bytes))
		if s.run == 0 || s.most >= s.least {
			s.run, s.most = 0, 0
		}
	}
}

// sizeLost notes that packet id was lost.
func (c *Conn) sizeLost(id int64, p *sentPacket) {
	s := c.search
	if s == nil {
		return
	}
	s.since = 0
	loss, _ := c.rates.expect()
	switch {
	case id == s.probe:
		c.Counters.SizeProbesLost++
		s.probe = bunch.NoPacket
		s.tries++
		s.at = c.now + time.Duration(s.tries)*tryGap
		if s.tries >= noChance(loss, probeChance) {
			s.tries, s.failed = 0, s.bytes
			c.settleSize()
		}
	case int(p.bytes) <= c.basePacket():
	case int(p.bytes) <= s.size:
		s.above += (1 - s.above) / largeSpan
		if s.row++; s.row == 1 {
			s.loss = loss
		}
		if int(p.bytes) > s.most {
			if s.run++; s.run == 1 {
				s.least = int(p.bytes)
			}
			s.least = min(s.least, int(p.bytes))
		}
		if max(s.row, s.run) >= noChance(s.loss, otherChance) || s.above > largeLoss {
			c.narrow()
		}
	}
}

// noChance is how many packets in a row are lost with less than that probability on a path of that loss.
func noChance(loss, chance float64) int {
	return max(searchTries, int(math.Ceil(math.Log(chance)/math.Log(min(max(loss, 0.03), 0.5)))))
}

// settleSize ends the search when it is close enough.
func (c *Conn) settleSize() {
	s := c.search
	least := c.cfg.LargestPacket
	if s.failed > 0 {
		least = s.failed
	}
	if least-s.size <= searchStep {
		s.failed, s.full, s.at = 0, 0, c.now+searchAgain
	}
}

// narrow returns to the base size: packets above it get lost, all or many, and smaller ones, or nothing would be known of that, arrive.
func (c *Conn) narrow() {
	s := c.search
	if s.wait = min(2*s.wait, searchAgain); c.now-s.raised > searchHeld {
		s.wait = searchSoon
	}
	c.Counters.Narrowed++
	s.size, s.failed, s.full, s.probe, s.tries, s.row, s.run, s.most, s.above, s.at = c.basePacket(), 0, 0, bunch.NoPacket, 0, 0, 0, 0, 0, c.now+s.wait
	c.channels.SetPacketBits(c.emptyRoom(s.size))
	if c.path != nil {
		*c.path = path{} // what it counted was above that size
	}
}
