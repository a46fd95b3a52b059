// Package layout is a struct as replicated values: which of its fields are sent, in what form, to whom, and what
// of them has changed (Unreal's FRepLayout).
//
// # Tags
//
// Fields with a net tag are replicated, exported or not, and those of embedded structs; an empty tag will do. Options are separated by commas:
//
//	q=0.01       floats in steps of that: sent as the nearest number of steps
//	rot=16       floats that are angles in degrees, as that many bits of a turn (8 to 16)
//	quat=15      structs and arrays of four floats that are a rotation, x, y, z and w of any length and sign: as three numbers of
//	             that many bits (8 to 16), which is to 0.005 degrees with 15; it arrives with length 1 and the largest number positive.
//	             {0, 0, 0, 0} arrives as that
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
//	custom          while Base.SetCondition says so; changes wait meanwhile
//	replay          to recordings            replayorowner  skipreplay
//	never           to nobody
//	simulatedorphysics          as simulated, and while Base.SetPhysics says so to who controls the actor too
//	simulatednoreplay           as simulated, but not to recordings
//	simulatedorphysicsnoreplay  as simulatedorphysics, but not to recordings
//	group=red       to connections that are in that group (Peer.JoinGroup), and to recordings
//
// # Types
//
// Values are bools, integers, floats, strings, and arrays, slices and structs of values; types with a serializer of their own
// (CustomValue), Refs and netguid.GUIDs, fast arrays. A time.Time is its moment, without its location, and is UTC at the other end; a
// time.Duration is an integer. A netip.Addr, AddrPort or Prefix is its bytes. A struct without exported fields, or a map, that has
// MarshalText and UnmarshalText is its text, of cap= bytes at most; with AppendText comparing it need not allocate. A pointer to a
// struct is the struct's value, or nil; each value that comes is in new memory. What it points to may be changed in place. A pointer to an actor
// isn't a value: use a Ref. No type may contain itself.
//
// # Units
//
// A unit is what changes and is sent as a whole, and has a bit in the change mask. It
// is a scalar, a struct or array of two to four floats of one kind (a vector, a rotator), a
// string, a byte slice, a slice, a pointer, a value with its own serializer, a fast array, or a group. Other structs and
// arrays are as many units as they have parts.
//
// A group is up to 1024 plain numbers (not references) with one bit together, and a mask of their own: what is sent is the parts that
// changed since the change up to which the connection has the group. An array of more than four bools, integers or floats without q=
// or rot=, or of structs of these, is a group, so that a [16]byte is one unit of 16 bytes. A class has 1024 units at most, the parts
// counted, and 64 when each group is one: of a larger class numbers are put together as needed, first those without q=, rot= and
// notify=, from the last field on. A q= or rot= in a group is sent without a baseline. Layouts with and without groups understand
// each other: the other end's parts are found by their names.
//
// # On the wire
//
//	unit             absolute                                  against a baseline
//	bool             1
//	int, uint        packed int, signed ones in zigzag
//	max=m            SerializeInt(m+1)
//	q=               width 6 | n values of width, zigzag       width 4 | n differences; width 15: absolute follows; or predicted
//	rot=b            n values of b                             width 4 | n differences; width 15: absolute follows; or predicted
//	quat=b           2 which isn't sent, 3 values of b         1, or 0 and 2 which isn't sent | width 4 | 3 differences; the 2 bits
//	                                                          for what it would be in any case: absolute follows; or predicted
//	float32, 64      n values of 32 or 64
//	reference        packed int, the GUID
//	string           packed length | bytes
//	fast array       length in bits 17 | bits
//	pointer          packed length in bits | 1 set, then the value; 0 for nil
//	group            for each 64 parts: 1 set: a bit a part; else 4 how many, and the place of each | the parts, absolute
//	others           packed length in bits | bits
//
// A predicted rotation has the same 1, or 0 and 2 bits, and the differences of three numbers. A predicted number is its difference to where both ends expect it, in zigzag, in a Rice code of a width that both ends know: see
// Past. For v, a width of k and m ones at most, 2 to 6
//
//	v>>k < m         v>>k ones | 0 | the k low bits of v
//	others           m ones | (v>>k)-m+1 in Elias gamma: for n bits n-1 ones, 0, the n-1 low bits | the k low bits of v
//
// What the other end describes as wider than it is here arrives cut to what fits: integers as the largest.
package layout
