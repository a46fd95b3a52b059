// Package layout says how a struct is replicated: which of its fields are sent, in what form and to whom, and which of them
// have changed (Unreal's FRepLayout).
//
// # Tags
//
// A field with a net tag is replicated, whether it is exported or not. So are the tagged fields of embedded structs. The tag may be empty. Options are separated
// by commas:
//
//	q=0.01       floats: sent as the nearest whole number of steps of 0.01
//	rot=16       floats that are angles in degrees: sent in 16 bits, 8 to 16 are possible
//	quat=15      structs and arrays of four floats that are a rotation (x, y, z, w; any length and sign): sent as three numbers of 15 bits,
//	             8 to 16 are possible. 15 bits are exact to 0.005 degrees. The rotation arrives with length 1, and with its largest number
//	             positive. {0, 0, 0, 0} arrives unchanged
//	max=100      unsigned integers from 0 to 100: sent in as few bits as the largest one needs
//	cap=64       strings, byte slices and other slices: at most 64 elements. Default 1024. A longer value doesn't fit, and isn't sent
//	notify=OnX   when the field has changed on a client, its method OnX is called, with the old value if OnX has a parameter
//
// All fields of a struct are its parts, unexported ones too. The options of a struct, an array or a slice hold for all its parts, except for fields of a struct that have a tag of their own.
//
// A condition says who gets an actor's field. Without one everybody does:
//
//	initial         everybody, once, with the actor's first values
//	owner           the owner
//	skipowner       everybody but the owner
//	initialorowner  the owner; others once, with the actor's first values
//	simulated       everybody but the client that controls the actor (Base.SetAutonomous)
//	autonomous      the client that controls the actor
//	custom          everybody, while Base.SetCondition has it on; changes wait while it is off
//	replay          recordings
//	replayorowner   recordings and the owner
//	skipreplay      everybody but recordings
//	never           nobody
//	simulatedorphysics          as simulated; while Base.SetPhysics has it on, the controlling client too
//	simulatednoreplay           as simulated, but not recordings
//	simulatedorphysicsnoreplay  as simulatedorphysics, but not recordings
//	group=red       connections in the group red (Peer.JoinGroup), and recordings
//
// # Types
//
// These types can be replicated:
//
//	bools, integers, floats, strings
//	arrays, slices and structs of what is listed here
//	types with a serializer of their own (CustomValue)
//	Ref, netguid.GUID, fast arrays
//	time.Time                     without its location: it is UTC at the other end
//	time.Duration                 as an integer
//	netip.Addr, AddrPort, Prefix  as their bytes
//	a struct without exported fields, or a map, with MarshalText and UnmarshalText
//	                              as its text, of cap= bytes at most. With AppendText a comparison doesn't allocate
//	a pointer to a struct         as the struct's value, or nil. The struct may be changed in place. A client allocates a new one
//	                              for each value that arrives
//
// A pointer to an actor can't be replicated: use a Ref. No type may contain itself.
//
// # Units
//
// A unit is sent as a whole, and has one bit in the mask of changed units. Units are: a scalar; a struct or array of two to four floats of one
// type (a vector, a rotator); a string; a slice; a pointer; a value with its own serializer; a fast array; a group. Any other struct or
// array is as many units as it has parts.
//
// A group is up to 1024 plain numbers (not references) that share one bit, and have a mask of their own. An update holds the parts that have changed
// since the state that the connection is known to have. An array of more than four bools, integers or floats without q= or rot=, or of
// structs of these, is a group. So a [16]byte is one unit of 16 bytes.
//
// A class has at most 1024 units when the parts of groups are counted, and at most 64 when each group counts as one. When a class has more than
// 64, numbers are put into groups: first those without q=, rot= and notify=, beginning with the last field. A q= or rot= in a group is sent
// without a baseline. The two ends may group differently, because parts are found by their names.
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
// A predicted number is sent as its difference from the value that both ends predict (see Past), in zigzag and a Rice code. Both ends
// know the code's width. A predicted rotation begins with the same bits as an absolute one against a baseline: 1, or 0 and 2 bits. The differences of three numbers
// follow. The Rice code of v, with a width of k and at most m ones (2 to 6), is
//
//	v>>k < m         v>>k ones | 0 | the k low bits of v
//	others           m ones | (v>>k)-m+1 in Elias gamma: for n bits n-1 ones, 0, the n-1 low bits | the k low bits of v
//
// A number that is too large for the receiver's field, which may be smaller than the sender's, is set to the largest that fits.
package layout
