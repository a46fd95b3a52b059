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
	searchLook  = 15 * time.Second // after a search that ended below a size that was lost, as that may have been chance; twice as long each time, up to searchAgain
	searchSoon  = time.Second      // after larger packets were lost; twice as long each time that happens within searchHeld to a size that carried fewer than searchCarried
	searchHeld  = time.Minute
	// searchCarried packets above the base size that arrived since the size rose say that the path carried them.
	searchCarried = 32
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
	// burstCounts of the packets that were lost between two that arrived count for that, and for those that were lost while smaller ones arrived: more may
	// be a full queue.
	burstCounts = 2
	// takenBytes is what an end takes of others at least, whether it tries larger packets itself or not.
	takenBytes = 1500
)

// search is the state of a connection that has filled packets.
//
// Invariant: the base size <= size < failed, unless failed is 0. before is 0, or above the base size, which size is then.
type search struct {
	size   int           // bytes that a packet may have
	failed int           // the smallest size that doesn't arrive, 0 none
	full   int           // packets that were full since the last search
	probe  int64         // the probe in flight, or bunch.NoPacket
	bytes  int           // its size
	tries  int           // probes of that size that were lost
	at     time.Duration // when the next probe may leave
	wait   time.Duration // before the next search when larger packets get lost
	look   time.Duration // how long after the last search the size that failed is tried again
	raised time.Duration // when size last rose
	proven int           // packets above the base size that have arrived since then
	since  time.Duration // when the first packet above the base size left since the newest fate; 0 none
	row    int           // packets above the base size that were lost in a row
	loss   float64       // the measured loss before them
	run    int           // those that were lost since one of their size, or larger, arrived, while smaller ones may have
	burst  int           // those that were lost since any packet arrived
	least  int           // the smallest of the run
	most   int           // the largest that has arrived since the run began: that smaller ones are lost is chance
	above  float64       // the loss of packets above the base size
	before int           // the size before the last return to the base size, to be tried first; 0 once that is done
	beyond int           // failed then
	resume time.Duration // at then
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

// filled notes that the packet under construction has no room for a bunch.
func (c *Conn) filled() {
	if c.cfg.LargestPacket == 0 || c.pendingFull {
		return
	}
	c.pendingFull = true
	if c.search == nil {
		c.search = &search{size: c.basePacket(), probe: bunch.NoPacket, wait: searchSoon, look: searchLook}
	}
	c.search.full++
}

// sizeProbeDue reports whether a probe waits for nothing but the controller. Reliable bunches wait for it then, as those of a busy connection would leave
// nothing of the budget.
func (c *Conn) sizeProbeDue() bool { return c.search != nil && c.search.due(c) }

func (s *search) due(c *Conn) bool {
	return s.full >= searchFull && s.probe == bunch.NoPacket && c.now >= s.at && c.flow.probes == 0 &&
		!c.closer.closing && !c.closer.lastWords && !c.Closed() && !c.packetsFull(0) && c.ackedChannel() != nil
}

// trySize sends a probe when one is due and the controller allows it.
func (c *Conn) trySize() {
	if c.out.Len() > 0 || !c.sizeProbeDue() || c.Budget() <= 0 {
		return
	}
	s := c.search
	if s.tries == 0 {
		s.bytes = c.cfg.LargestPacket
		switch {
		case s.before > 0:
			s.bytes = s.before
		case s.failed == 0:
		case s.failed-s.size > searchStep:
			s.bytes = (s.size + s.failed) / 2
		default:
			s.bytes = s.failed // a look at where the last search ended
		}
	}
	c.sendBuffer.grow(&c.cfg)
	s.probe = c.notify.OutID()
	c.Counters.SizeProbes++
	c.startPacketOf(s.bytes)
	c.sendPadded(c.ackedChannel(), s.bytes)
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
	s.since, s.burst = 0, 0
	switch {
	case id == s.probe:
		s.probe, s.tries, s.row, s.run, s.most, s.at, s.raised, s.proven = bunch.NoPacket, 0, 0, 0, 0, c.now, c.now, 0
		s.size = max(s.size, int(p.bytes)) // a bound right above the base size leaves no room for larger packets
		c.channels.SetPacketBits(c.emptyRoom(s.size))
		switch {
		case s.before > 0: // the losses were chance, a burst or a darkness: the search goes on where it was
			if s.beyond > s.size {
				s.failed = s.beyond
			}
			s.before, s.at = 0, max(c.now, min(s.resume, c.now+searchLook))
			return
		case s.bytes == s.failed:
			s.failed, s.look = 0, searchLook // what was lost before was chance, or the path is wider
		}
		c.settleSize()
		return
	case int(p.bytes) > c.basePacket():
		s.above -= s.above / largeSpan
		s.proven++
		s.row, s.most = 0, max(s.most, int(p.bytes))
		if s.run == 0 || s.most >= s.least {
			s.run, s.most = 0, 0
		}
	}
	if max(s.row, s.run) >= noChance(s.loss, otherChance) || s.above > largeLoss {
		c.narrow()
	}
}

// sizeLost notes that packet id was lost. What that means is known when another has arrived: a large one says that it was a full queue, or a darkness.
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
			s.tries, s.failed, s.before = 0, s.bytes, 0
			c.settleSize()
		}
	case int(p.bytes) <= c.basePacket():
	case int(p.bytes) <= s.size:
		if s.row++; s.row == 1 {
			s.loss = loss
		}
		if s.burst++; s.burst > burstCounts {
			return
		}
		s.above += (1 - s.above) / largeSpan
		if int(p.bytes) > s.most {
			if s.run++; s.run == 1 {
				s.least = int(p.bytes)
			}
			s.least = min(s.least, int(p.bytes))
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
	if least-s.size > searchStep {
		return
	}
	s.full, s.at = 0, c.now+searchAgain
	if s.failed > 0 {
		s.at = c.now + s.look
		s.look = min(2*s.look, searchAgain)
	}
}

// narrow returns to the base size: packets above it get lost, all or many, and smaller ones, or nothing would be known of that, arrive.
func (c *Conn) narrow() {
	s := c.search
	s.wait = min(2*s.wait, searchAgain)
	if c.now-s.raised > searchHeld || s.proven >= searchCarried && s.above <= largeLoss {
		s.wait = searchSoon
	}
	c.Counters.Narrowed++
	s.look = searchLook
	if s.size > c.basePacket() {
		s.before, s.beyond, s.resume = s.size, s.failed, s.at
	}
	s.size, s.failed, s.full, s.probe, s.tries, s.row, s.run, s.most, s.above, s.at = c.basePacket(), 0, 0, bunch.NoPacket, 0, 0, 0, 0, 0, c.now+s.wait
	c.channels.SetPacketBits(c.emptyRoom(s.size))
	if c.path != nil {
		*c.path = path{} // what it counted was above that size
	}
}
