package netconn

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/bunchnet/bunchnet/channel"
)

// A path whose MTU is below our packets, on the way of which nobody says so, loses all large packets and no small ones:
// the connection looks alive and its reliable bunches never arrive. When that has gone on for narrowTime and
// narrowLost packets, it is measured whether it is chance.
const (
	narrowTime  = 10 * time.Second
	narrowLost  = 64
	narrowAcked = 16
)

// errPath is what PathNarrow's Err wraps.
var errPath = errors.New("netconn: large packets don't arrive; give both ends a smaller Protocol.Bunch.MaxPacket")

// path counts lost packets with reliable bunches since one as large as the largest of them arrived.
//
// Invariant: smaller <= largest < smallest <= biggest, as far as they are known.
type path struct {
	smallest int32 // packet lost since then and still suspected of being too large; 0 none
	biggest  int32 // of those lost
	largest  int32 // packet acked in the last narrowTime/2, or in the one before: the path may become narrower. All are smaller than smallest
	recent   int32 // and in the last
	turned   time.Duration
	lostN    int
	ackedN   int
	emptyN   int           // those of them without reliable bunches
	missedN  int           // smaller ones without reliable bunches that were lost since then
	probes   int           // packets of that size, sent to find out, that were lost, and the empty ones behind them not
	probed   bool          // the newest packet whose fate is known was lost, and one of those
	asked    time.Duration // when the last of them was sent
	since    time.Duration // of the first loss
}

// What was lost may be of a blackout that is over, or the peer refused what was in the packets. So the verdict is a
// measurement: so many packets of the size, with nothing in them to refuse, are sent and lost, while the empty packet sent right behind
// each arrives. On a path that loses small packets too they are more: as many as make it all but impossible that they were lost for the
// same reason.
const (
	narrowProbes  = 5
	narrowChance  = 1e-5
	probeInterval = time.Second
	probeShort    = 4 // bytes: a probe of a full packet has fewer less, as no whole bunch fits into them
)

// acked notes that a packet has arrived: what is that large gets through. A smaller one was lost by chance then, or refused.
func (p *path) acked(now time.Duration, s *sentPacket) {
	switch {
	case p.smallest == 0:
	case s.bytes >= p.biggest || s.probe && s.bytes > p.biggest-probeShort:
		*p = path{}
	default:
		if s.bytes >= p.smallest {
			p.smallest, p.probes = p.biggest, 0
		}
		if p.turned == 0 {
			p.turned = now
		} else if now-p.turned >= narrowTime/2 {
			p.largest, p.recent, p.turned = p.recent, 0, now
		}
		p.largest, p.recent = max(p.largest, s.bytes), max(p.recent, s.bytes)
		p.ackedN++
		if !s.reliable {
			p.emptyN++
		}
		if p.probed {
			p.probes++
		}
		p.probed = false
	}
}

// lost notes a packet that didn't.
func (p *path) lost(now time.Duration, s *sentPacket) {
	p.probed = s.probe && s.bytes > p.largest
	if s.bytes < p.smallest && !s.reliable {
		p.missedN++
	}
	switch {
	case s.bytes <= p.largest || !s.reliable && !s.probe:
		return // nothing waits for it, or it was chance
	case p.smallest == 0:
		p.since, p.smallest = now, s.bytes
	}
	p.biggest = max(p.biggest, s.bytes)
	if p.lostN < narrowLost { // what is suspected is measured, whatever else gets lost
		p.smallest = min(p.smallest, s.bytes)
	}
	if !s.probe {
		p.lostN++
	}
}

// losePath notes that a packet didn't arrive. One that left before the size became smaller is known to be too large.
func (c *Conn) losePath(p *sentPacket) {
	if c.search != nil && int(p.bytes) > c.search.size {
		return
	}
	if c.path == nil {
		c.path = new(path)
	}
	c.path.lost(c.now, p)
}

// suspect reports whether enough was lost to find out why.
func (p *path) suspect(now time.Duration) bool {
	return p.lostN >= narrowLost && p.ackedN >= narrowAcked && now-p.since >= narrowTime/2
}

// probing reports whether it isn't known yet if the path loses large packets or the peer refuses what is in them.
func (p *path) probing(now time.Duration) bool {
	return p != nil && p.suspect(now) && !p.proved(now)
}

// proved reports whether the lost probes can't be chance.
func (p *path) proved(now time.Duration) bool {
	loss := float64(p.missedN+1) / float64(p.missedN+p.emptyN+2)
	return p.probes >= narrowProbes && now-p.since >= narrowTime && math.Pow(loss, float64(p.probes)) < narrowChance
}

// probePath sends a packet of the size that is lost, full of empty unreliable bunches, which no handler gets, on a
// channel that the peer has; and an empty packet behind it.
func (c *Conn) probePath() {
	if c.path != nil && c.path.lostN > 0 {
		c.probeLost()
	}
}

func (c *Conn) probeLost() {
	p := c.path
	if c.Table().Unacked() == 0 {
		*p = path{} // nothing waits: it was a blackout
		return
	}
	if !p.suspect(c.now) || c.now-p.asked < probeInterval || c.out.Len() > 0 || c.packetsFull(0) {
		return
	}
	ch := c.ackedChannel()
	if ch == nil {
		return // a connection whose first bunches don't arrive never joins, or times out
	}
	p.asked = c.now
	c.startPacket()
	c.sendPadded(ch, int(p.smallest))
	c.sendAckPacket()
}

// ackedChannel is a channel that the peer has, among the first: the control channel, if there is one.
func (c *Conn) ackedChannel() *channel.Channel {
	for ch := range c.Table().All {
		switch {
		case ch.OpenAcked() && !ch.Closing():
			return ch
		case ch.Index() > 32:
			return nil
		}
	}
	return nil
}

// checkPath ends a connection whose reliable bunches can't arrive, after a packet was lost.
func (c *Conn) checkPath() {
	p := c.path
	if !p.suspect(c.now) || !p.proved(c.now) {
		return
	}
	c.end(PathNarrow, fmt.Errorf("%w: %d packets of up to %d bytes were lost in %v, while %d of up to %d bytes arrived",
		errPath, p.lostN+p.probes, p.biggest, (c.now-p.since).Round(time.Second), p.ackedN, p.largest))
}
