// Package seqnum does the arithmetic of sequence numbers that wrap.
//
// A number on the wire has few bits and wraps around. In memory every sequence is
// an int64 id that never wraps. [Space.Expand] converts a received number to an id,
// and [Space.Truncate] an id to a number to send. Nothing else in the module computes
// modulo a power of two.
//
//	id := seqnum.Packet.Expand(wire, newest) // the id nearest to newest
//
// Two numbers compare by the shorter way around the circle: a comes after b
// when a-b, taken modulo the size of the space, is in (0, size/2).
package seqnum

// A Space is a width of sequence numbers in bits, 1 to 16.
type Space uint8

const (
	// Channel numbers reliable bunches of one channel (Unreal's MAX_CHSEQUENCE 1024).
	Channel Space = 10
	// Packet numbers packets of a connection (Unreal's FNetPacketNotify, 4.19 and later).
	Packet Space = 14
	// U16 is the whole of a uint16, as in the packet-ack libraries.
	U16 Space = 16
)

// Size is how many numbers there are before they repeat.
func (s Space) Size() int { return 1 << s }

// Mask has the low bits set that a number of the space uses.
func (s Space) Mask() uint16 { return uint16(s.Size() - 1) }

// Next is the number after a.
func (s Space) Next(a uint16) uint16 { return (a + 1) & s.Mask() }

// Diff is a-b by the shorter way around, in [-Size/2, Size/2).
func (s Space) Diff(a, b uint16) int {
	shift := 32 - uint(s)
	return int(int32(uint32(a-b)<<shift) >> shift)
}

// Less reports whether a comes before b. Of two numbers half a circle apart
// neither comes before the other.
func (s Space) Less(a, b uint16) bool { return s.Diff(b, a) > 0 }

// Truncate is what of id goes over the wire.
func (s Space) Truncate(id int64) uint16 { return uint16(id) & s.Mask() }

// Expand is the id nearest to near that truncates to wire; of two equally near
// ones the lower.
func (s Space) Expand(wire uint16, near int64) int64 {
	return near + int64(s.Diff(wire, s.Truncate(near)))
}
