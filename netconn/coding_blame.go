package netconn

import (
	"math"
	"time"
)

// Whether symbols cause the loss that they are sent for. On a narrow path whose queue is too short to be measured they would overflow it. So where much is lost that symbols
// don't repair, every other block of packets leaves without symbols for a while. Where only the blocks with symbols get lost, symbols stay away for blameTime, and then it is tried again. Where both do, it is
// tried again ever more seldom: each time costs a path that does lose much the symbols of half the packets.

// blame compares what is lost of packets without symbols, and with them.
type blame struct {
	first    int64 // packet of the blocks that count, when they are under way
	sent     [2]int
	lost     [2]int // of the packets with symbols, and without
	away     bool
	until    time.Duration // nothing is tried
	innocent time.Duration // for so long, when symbols weren't to blame
	loss     float64       // moving average over 128 packets of what was lost and not repaired
}

const (
	muchLost    = 0.2  // and not repaired
	someLost    = 0.05 // and not repaired: with jitter packets that are only late are repaired as well
	nearlyHalf  = 0.4  // repaired or not
	blameBlock  = 32
	blameSkip   = 8 // the path's queue is full at first, or empty
	blameBlocks = 8
	theirs      = 0.5 // of the share that is lost with symbols: where less is lost without them, it is theirs
	blameTime   = time.Minute
	blameAgain  = 10 * time.Second
	blameSoon   = 20 * time.Second
	blameSeldom = 16 * time.Minute
)

// block is 0 for a packet with symbols, and 1 for one without.
func (b *blame) block(id int64) int { return int((id - b.first) / blameBlock & 1) }

// leaveOut reports whether a packet leaves without symbols.
func (b *blame) leaveOut(id int64) bool {
	return b.away || b.first != 0 && b.block(id) == 1
}

// fate takes the fate of a packet. next is the packet that leaves next, and loss the average of what was lost, repaired or not.
func (b *blame) fate(now time.Duration, id, next int64, lost, repaired bool, loss float64) {
	x := 0.0
	if lost && !repaired {
		x = 1
	}
	b.loss += (x - b.loss) / 128
	switch {
	case b.first == 0:
		if now >= b.until && (b.away || b.loss > muchLost || b.loss > someLost && loss > nearlyHalf) {
			*b = blame{first: next, innocent: max(b.innocent, blameSoon), loss: b.loss}
		}
	case id < b.first:
	case id < b.first+blameBlocks*blameBlock:
		if (id-b.first)%blameBlock < blameSkip {
			break
		}
		at := b.block(id)
		b.sent[at]++
		if lost {
			b.lost[at]++
		}
	default:
		b.judge(now)
	}
}

func (b *blame) judge(now time.Duration) {
	b.first = 0
	with, without := float64(b.lost[0])/float64(max(1, b.sent[0])), float64(b.lost[1])/float64(max(1, b.sent[1]))
	switch {
	case with <= muchLost: // what was much has passed
		b.until, b.innocent = now+blameAgain, 0
	case without < theirs*with && float64(b.lost[0]-b.lost[1]) > 3*math.Sqrt(float64(b.lost[0]+b.lost[1])):
		b.away, b.until, b.innocent = true, now+blameTime, 0
	default:
		b.until, b.innocent = now+b.innocent, min(2*b.innocent, blameSeldom)
	}
}
