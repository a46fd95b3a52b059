package netconn

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// How long packets get while they are covered by symbols. A symbol is as long as the longest packet that it covers: one packet with what several ticks held up,
// such as the answers to messages that a loss kept from being delivered, has the symbols of the packets behind it grow as well. So what is longer than a tick's usual
// content leaves in several packets, which also aren't lost together as often.

// lengths knows how much a tick usually sends.
type lengths struct {
	usual float64 // bytes of the bunches of a tick, smoothed over lengthTicks; 0 until the first tick is over
	sum   int     // of the tick at hand
	at    time.Duration
	ended int // packets of this tick that were ended before they were full
}

const (
	lengthTicks = 16
	longer      = 1.2 // times the usual length
	mostEnded   = 4   // in a tick, so that a game that begins to send much more doesn't send a packet for each bunch
)

// sent notes a packet's content.
func (l *lengths) sent(now time.Duration, bytes int) {
	l.tick(now)
	l.sum += bytes
}

func (l *lengths) tick(now time.Duration) {
	if now == l.at {
		return
	}
	switch {
	case l.sum == 0:
	case l.usual == 0:
		l.usual = float64(l.sum)
	default:
		l.usual += (float64(l.sum) - l.usual) / lengthTicks
	}
	l.sum, l.at, l.ended = 0, now, 0
}

// tooLong reports whether the packet at hand leaves without bits more, because the symbols that cover it would be longer than usual.
func (c *Conn) tooLong(bits int) bool {
	k := c.coder
	if k == nil || !k.peer || c.out.Len() <= c.contentPos {
		return false
	}
	k.lengths.tick(c.now)
	return k.lengths.usual > 0 && float64(c.out.Len()-c.contentPos+bits) > 8*longer*k.lengths.usual && k.lengths.ended < mostEnded &&
		c.repairs(c.notify.OutID()) > 0 && c.codingWindow() == windowAlone && c.Budget() > 0 && !c.bunchesFull(0)
}

// endLong sends the packet at hand if a bunch would make it too long. The parts of an unreliable bunch, and a bunch beside the open of its channel, stay where they are.
func (c *Conn) endLong(h *bunch.Header, ch *channel.Channel) bool {
	if h.Partial || ch.OpenedLocally() && !ch.OpenAcked() || !c.tooLong(h.Bits) {
		return false
	}
	c.coder.lengths.ended++
	c.FlushNet()
	return true
}
