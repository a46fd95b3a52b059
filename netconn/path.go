package netconn

import (
	"errors"
	"fmt"
	"time"
)

// A path whose MTU is below our packets, on the way of which nobody says so, loses all large packets and no small ones:
// the connection looks alive and its reliable bunches never arrive. When that has gone on for narrowTime and
// narrowLost packets, it isn't chance.
const (
	narrowTime  = 10 * time.Second
	narrowLost  = 64
	narrowAcked = 16
)

// errPath is what PathNarrow's Err wraps.
var errPath = errors.New("netconn: large packets don't arrive; give both ends a smaller Protocol.Bunch.MaxPacket")

// path counts lost packets with reliable bunches since the last one of their size, or larger, arrived.
//
// Invariant: smaller <= largest < smallest, as far as they are known.
type path struct {
	smallest int32 // packet lost since then; 0 none
	largest  int32 // packet acked since then, all of them smaller than that
	lostN    int
	ackedN   int
	since    time.Duration // of the first loss
}

// acked notes that a packet of so many bytes has arrived: what is that large gets through.
func (p *path) acked(bytes int32) {
	switch {
	case p.lostN == 0:
	case bytes >= p.smallest:
		*p = path{}
	default:
		p.largest = max(p.largest, bytes)
		p.ackedN++
	}
}

// lost notes a packet that didn't.
func (p *path) lost(now time.Duration, s *sentPacket) {
	switch {
	case !s.reliable || s.bytes <= p.largest:
		return // nothing waits for it, or it was chance
	case p.lostN == 0:
		p.since, p.smallest = now, s.bytes
	}
	p.smallest = min(p.smallest, s.bytes)
	p.lostN++
}

// checkPath ends a connection whose reliable bunches can't arrive.
func (c *Conn) checkPath() bool {
	p := &c.path
	if p.lostN < narrowLost || p.ackedN < narrowAcked || c.now-p.since < narrowTime {
		return false
	}
	c.end(PathNarrow, fmt.Errorf("%w: %d packets of %d bytes and more were lost in %v, while %d of up to %d bytes arrived",
		errPath, p.lostN, p.smallest, (c.now-p.since).Round(time.Second), p.ackedN, p.largest))
	return true
}
