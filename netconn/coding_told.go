package netconn

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// What the ends tell each other of packets that were repaired: such a packet is acked, though the path lost it.

// lastIDs is a set of ids from 1, the newest of those that are equal modulo its length.
type lastIDs [64]int64

func (l *lastIDs) add(id int64)      { l[id&int64(len(l)-1)] = id }
func (l *lastIDs) has(id int64) bool { return id > 0 && l[id&int64(len(l)-1)] == id }
func (l *lastIDs) remove(id int64)   { l[id&int64(len(l)-1)] = 0 }

// telling is the packets of the peer that were repaired. Where the path reorders packets some of them are only late. A packet comes when its repair has been told, so the
// measured share of late ones isn't told.
type telling struct {
	repaired lastIDs // those that haven't come
	late     float64 // the share of them that comes; a moving average over lateSpan
	owed     float64 // repairs to tell
	ids      lastIDs // those that are told
	newest   int64   // of these
	left     int     // packets that tell of the newest one
}

// tellTimes is how often a repair is told: a packet that says so may be lost as well.
const tellTimes = 2

// lateSpan is the repairs that late is an average of.
const lateSpan = 32

// repair notes a packet that was repaired.
func (t *telling) repair(id int64) {
	t.repaired.add(id)
	t.late -= t.late / lateSpan
	if t.owed += 1 - t.late; t.owed < 1 {
		return
	}
	t.owed--
	t.ids.add(id)
	t.newest, t.left = id, tellTimes
}

// came notes a packet that came, maybe after it was repaired.
func (t *telling) came(id int64) {
	if t.repaired.has(id) {
		t.repaired.remove(id)
		t.late += 1.0 / lateSpan
	}
}

// told is which packets were repaired, as the trailer of a packet has it that acks up to a packet. The peer's controller takes what is told too late, or never, for what arrived.
func (t *telling) told(acked int64) (repaired uint32) {
	if t.left == 0 {
		return 0
	}
	for i := range coding.MaxRepaired {
		if t.ids.has(acked - int64(i)) {
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
		c.coder.repaired.add(c.notify.AckedID(h) - int64(bits.TrailingZeros32(left)))
	}
}

// wasRepaired reports whether the peer said of our packet that it was lost and repaired.
func (k *coder) wasRepaired(id int64) bool {
	return k != nil && k.repaired.has(id)
}
