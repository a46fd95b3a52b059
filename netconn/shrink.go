package netconn

import "github.com/bunchnet/bunchnet/bunch"

// Rings grow with what is in flight, and shrink again. Every shrinkPeriods each ring is cut to twice the most it held in the last two
// intervals, if it is more than twice as large as that. So variations within eight seconds allocate nothing.

const (
	smallRing     = 8
	shrinkPeriods = 8 // of ratePeriod
)

// used is the most that a ring held since the last check, and in the interval before.
type used struct{ now, before int32 }

func (u *used) note(n int64) { u.now = max(u.now, int32(n)) }

// size is the size that the ring needs. It starts a new interval, with n, the current content, as its most.
func (u *used) size(n int64) int {
	size := smallRing
	for size < 2*int(max(u.now, u.before)) {
		size *= 2
	}
	u.before, u.now = u.now, int32(n)
	return size
}

// shrink is called every shrinkPeriods.
func (c *Conn) shrink() {
	s := &c.sentPackets
	if size := s.inFlight.size(s.next - s.first); len(s.packets) > 2*size {
		s.resizePackets(size)
		c.notify.Shrink(size)
	}
	if size := s.noted.size(s.noteTail - s.noteHead); len(s.notes) > 2*size {
		s.resizeNotes(size)
	}
	c.order.shrink(c.Counters.Cached)
	c.in = bunch.In{} // it may be of a packet that was held back
	c.channels.Shrink()
}

// resizePackets keeps the packets in flight, and the newest one, whose fate may be known.
func (s *sentPackets) resizePackets(size int) {
	packets := make([]sentPacket, size)
	for i := min(s.first, s.next-1); i < s.next && len(s.packets) > 0; i++ {
		packets[i&int64(size-1)] = *s.packetAt(i)
	}
	s.packets = packets
}

func (s *sentPackets) resizeNotes(size int) {
	notes := make([]note, size)
	for i := s.noteHead; i < s.noteTail; i++ {
		notes[i&int64(size-1)] = *s.noteAt(i)
	}
	s.notes = notes
}

// shrink forgets the places of packets that are held back when none was since the last time: it costs one that comes
// late after that.
func (o *orderCache) shrink(cached uint64) {
	if o.held == 0 && o.cached == cached {
		o.slots, o.late.gaps = nil, nil
	}
	o.cached = cached
}
