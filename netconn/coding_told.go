package netconn

import (
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// What the ends tell each other of packets that were repaired: such a packet is acked, though the path lost it.

// telling is a packet that was repaired, and how often the peer will be told.
type telling struct {
	id   int64
	left int
}

// tellTimes is how often a repair is told: a packet that says so may be lost as well.
const tellTimes = 2

// tellRepaired is which of the peer's packets were repaired, as the next trailer has it.
func (c *Conn) tellRepaired() []byte {
	k := c.coder
	told := k.symbols[:0]
	acked := c.notify.WrittenAckID()
	for i := 0; i < k.tells && len(told) < coding.MaxRepaired; {
		t := &k.tell[i]
		switch d := acked - t.id; {
		case d < 0: // it isn't acked in this packet
			i++
			continue
		case d <= 255:
			told = append(told, byte(d))
			t.left--
		default:
			t.left = 0
		}
		if t.left > 0 {
			i++
			continue
		}
		k.tells--
		copy(k.tell[i:k.tells], k.tell[i+1:])
	}
	return told
}

// willTell has the peer told that its packet was lost and repaired. When there is no room its controller takes it for one that arrived.
func (k *coder) willTell(id int64) {
	if k.tells < len(k.tell) {
		k.tell[k.tells] = telling{id, tellTimes}
		k.tells++
	}
}

// toldRepaired notes what the header h says in its trailer.
func (c *Conn) toldRepaired(h *packetnotify.Header, t *coding.Trailer) {
	for _, d := range t.Repaired {
		id := c.notify.AckedID(h) - int64(d)
		c.coder.repaired[id&int64(len(c.coder.repaired)-1)] = id
	}
}

// wasRepaired reports whether the peer said of our packet that it was lost and repaired.
func (k *coder) wasRepaired(id int64) bool {
	return k != nil && k.repaired[id&int64(len(k.repaired)-1)] == id
}
