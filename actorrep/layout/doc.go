// Package layout is a struct as replicated values: which of its fields are sent, in what form, to whom, and what
// of them has changed (Unreal's FRepLayout).
//
// # Tags
//
// Fields with a net tag are replicated, exported or not, and those of embedded structs; an empty tag will do. Options are separated by commas:
//
//	q=0.01       floats in steps of that: sent as the nearest number of steps
//	rot=16       floats that are angles in degrees, as that many bits of a turn (8 to 16)
//	max=100      unsigned integers from 0 to that, in as many bits as it takes
//	cap=64       strings, bytes, slices: at most so many elements; default 1024, more doesn't fit
//	notify=OnX   call the method OnX, with the old value if it takes one, when the field has changed
//	             on a client
//
// They hold for all parts of a field that is a struct, an array or a slice, but for those that have a tag of their own.
//
// An actor's field may have a condition, or none for always:
//
//	initial         with the actor's first values only
//	owner           to the owner             skipowner      to all but the owner
//	simulated       to all that don't control the actor themselves
//	autonomous      to who does              initialorowner
//	custom          while Base.SetActive says so; changes wait meanwhile
//	replay          to recordings            replayorowner  skipreplay
//	never           to nobody
//
// # Units
//
// A unit is what changes and is sent as a whole, and has a bit in the change mask; a class has 64 at most. It
// is a scalar, a struct or array of two to four floats of one kind (a vector, a rotator), a
// string, a byte slice, a slice, a value with its own serializer, or a fast array. Other structs and
// arrays are as many units as they have parts.
//
// # On the wire
//
//	unit             absolute                                  against a baseline
//	bool             1
//	int, uint        packed int, signed ones in zigzag
//	max=m            SerializeInt(m+1)
//	q=               width 6 | n values of width, zigzag       width 4 | n differences; width 15: absolute follows
//	rot=b            n values of b                             width 4 | n differences; width 15: absolute follows
//	float32, 64      n values of 32 or 64
//	reference        packed int, the GUID
//	string           packed length | bytes
//	fast array       length in bits 17 | bits
//	others           packed length in bits | bits
//
// What the other end describes as wider than it is here arrives cut to what fits: integers as the largest.
package layout
