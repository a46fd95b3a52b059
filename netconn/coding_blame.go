package netconn

import (
	"math/bits"
	"time"
)

// Whether symbols cause the loss that they are sent for. On a narrow path whose queue is too short to be measured they would overflow it. So where much has been lost for a while that
// symbols don't repair, half of the blocks of packets leave without symbols. Where each block with symbols loses more than any without, symbols stay away for a minute, and then
// it is tried again. Otherwise it is tried again ever more seldom: each time costs a path that does lose much some packets' symbols.

type blame struct {
	loss  float64       // moving average over 128 packets of what was lost and not repaired
	since time.Duration // for so long much has been lost; 0 while it isn't
	first int64         // packet of the blocks that are compared; 0 if none are
	lost  int           // of the block under way
	least int           // of a block with symbols
	most  int           // of a block without
	away  bool          // symbols were to blame
	until time.Duration // nothing is tried
	wait  time.Duration // until the next try
}

const (
	muchLost     = 0.2  // repaired or not
	slowMore     = 0.1  // that the slower average must be above it: its errors are of minutes
	someLost     = 0.02 // and not repaired: with jitter packets that are only late are repaired as well
	forAWhile    = 10 * time.Second
	blockPackets = 32
	blockSkip    = 8  // the path's queue is full at first, or empty
	blocksTried  = 12 // one in 924 orders of as many losses has all of those with symbols first
	symbolsAway  = time.Minute
	firstWait    = 20 * time.Second
	longestWait  = 4 * time.Minute
)

// pathLost notes whether the path lost packet id, and whether the peer repaired it.
func (c *Conn) pathLost(id int64, lost, repaired bool) {
	c.rates.loss(lost)
	if c.coder != nil {
		seen := max(c.rates.lossRate, c.rates.slowLoss-slowMore) // what comes in waves is never much for long
		c.coder.blame.fate(c.now, id, c.notify.OutID(), lost, repaired, seen)
	}
}

// leaveOut reports whether a packet leaves without symbols.
func (b *blame) leaveOut(id int64) bool {
	return b.away || b.first != 0 && without((id-b.first)/blockPackets)
}

// without reports whether a block is one without symbols. Their order (Thue and Morse's) has no period that losses could follow.
func without(block int64) bool { return bits.OnesCount64(uint64(block))%2 == 1 }

// fate takes the fate of a packet, in their order. next is the packet that leaves next, and loss the average of what was lost, repaired or not.
func (b *blame) fate(now time.Duration, id, next int64, lost, repaired bool, loss float64) {
	x := 0.0
	if lost && !repaired {
		x = 1
	}
	b.loss += (x - b.loss) / 128
	if loss <= muchLost || b.loss <= someLost {
		b.since = 0
	} else if b.since == 0 {
		b.since = now
	}
	if b.first == 0 {
		if now >= b.until && (b.away || b.since != 0 && now-b.since > forAWhile) {
			b.first, b.lost, b.least, b.most, b.away = next, 0, blockPackets, 0, false
		}
		return
	}
	if id < b.first {
		return
	}
	at := id - b.first
	if lost && at%blockPackets >= blockSkip {
		b.lost++
	}
	if at%blockPackets == blockPackets-1 {
		b.compare(now, at/blockPackets)
	}
}

// compare counts a block that is over, and judges as soon as it can.
func (b *blame) compare(now time.Duration, block int64) {
	if !without(block) {
		b.least = min(b.least, b.lost)
	} else {
		b.most = max(b.most, b.lost)
	}
	b.lost = 0
	theirs := b.least > b.most
	if block == 0 || theirs && block < blocksTried-1 {
		return
	}
	b.first, b.away = 0, theirs
	if theirs {
		b.until, b.wait = now+symbolsAway, 0
	} else {
		b.wait = min(max(2*b.wait, firstWait), longestWait)
		b.until = now + b.wait
	}
}
