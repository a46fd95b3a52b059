package netconn

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// What the ends tell each other of packets that were repaired: such a packet is acked, though the path lost it.

// telling is the packets of the peer that were repaired.
type telling struct {
	ids    [2 * coding.MaxRepaired]int64 // by id, from 1
	newest int64
	left   int // packets that tell of the newest one
}

// tellTimes is how often a repair is told: a packet that says so may be lost as well.
const tellTimes = 2

// repaired notes a packet that was repaired.
func (t *telling) repaired(id int64) {
	t.ids[id%int64(len(t.ids))] = id
	t.newest, t.left = id, tellTimes
}

// told is which packets were repaired, as the trailer of a packet has it that acks up to a packet. The peer's controller takes what is told too late, or never, for what arrived.
func (t *telling) told(acked int64) (repaired uint32) {
	if t.left == 0 {
		return 0
	}
	for i := range min(coding.MaxRepaired, acked) {
		if id := acked - i; t.ids[id%int64(len(t.ids))] == id {
			repaired |= 1 << i
		}
	}
	if acked >= t.newest {
		t.left--
	}
	return repaired
}

// toldRepaired notes what the header h says in its trailer.
func (c *Conn) toldRepaired(h *packetnotify.Header, t *coding.Trailer) {
	for left := t.Repaired; left != 0; left &= left - 1 {
		id := c.notify.AckedID(h) - int64(bits.TrailingZeros32(left))
		c.coder.repaired[id&int64(len(c.coder.repaired)-1)] = id
	}
}

// wasRepaired reports whether the peer said of our packet that it was lost and repaired.
func (k *coder) wasRepaired(id int64) bool {
	return k != nil && k.repaired[id&int64(len(k.repaired)-1)] == id
}
