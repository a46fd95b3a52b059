// Package interp adds interpolation to actors. Tags say which fields to interpolate. A client draws these fields a little in the past, between
// received values. A server rewinds them to what a player saw, for hit tests (lag compensation).
//
// The buffers are those of package interpolation, the shapes those of package rewind; this package binds them to actors.
//
// # An actor that is interpolated
//
//	type Soldier struct {
//		actorrep.Base
//		Pos   Vec     `net:"q=0.01" interp:"teleport=5"` // a change by more than 5 is a teleport
//		Rot   Quat    `net:"quat=15" interp:""`          // turns the short way round
//		Spawn uint8   `net:"" interp:"jump"`             // the server increments it to teleport the soldier
//	}
//
//	in, err := interp.New(world, interp.Config{})                  // at both ends
//	soldiers, err := interp.Register(in, interp.ClassConfig[*Soldier]{Hitboxes: boxes})
//
//	each frame, on a client                       each tick, on a server
//	  TickDispatch                                  TickDispatch; the game's step
//	  world.Step(now)                               world.Step(now)
//	  in.Tick(now)                                  in.Tick(now)
//	  soldiers.At(s, &drawn); draw drawn.Pos        TickFlush
//
// Classes are still registered with the world, by World.Register or package predict. At returns a player's own, predicted actor as it is,
// so drawing code needn't distinguish it.
//
// # The interp tag
//
// An empty tag interpolates numbers, and structs and arrays of them, linearly. Integers are rounded. Bools keep the older value until the time of the
// newer. Options:
//
//	angle        an angle in degrees, interpolated the short way round; implied by net:"rot="
//	radians      an angle in radians, likewise
//	quat         four floats that are a rotation; implied by net:"quat="
//	step         keeps the older value until the time of the newer
//	jump         as step; a change of the field also means that the whole actor teleported and isn't interpolated
//	teleport=5   a change of the field by more than 5 means that the whole actor teleported
//
// Fields within a struct may have tags of their own. ClassConfig.Lerps interpolates the game's own types. A client whose game knows of
// a teleport calls Class.Teleport.
//
// # The delay
//
// A value's time is that of the server's Step that it is from; no field is needed for it. The server time at which an actor is drawn is
//
//	newest server time that can have arrived  -  lateness  -  reach * interval
//
// Lateness covers jitter: of the last 256 arrivals, 99.5 % were no later than this after the fastest. Packets that were held up behind
// a lost one count each. The interval is how often this actor's values really arrive: the median of its last 9 intervals. Values that
// come while no interpolated field changes don't count. So an actor with a low
// UpdateFrequency or little bandwidth is drawn farther in the past. Reach is 1 without loss, 2 from 0.4 % of packets lost on, and 3
// from 6 % on, so that at most 0.4 % of draws find a value missing.
//
// All three change too slowly to be noticed, and the drawn time never goes back. When a value is missing the actor stands still until it arrives:
// positions are never extrapolated.
//
// # Rest
//
// Nothing is sent while nothing changes, so the first value after a rest arrives after a long gap. When fewer packets were lost in the gap than
// values would have been sent, the actor was at rest, and is drawn standing until one interval before that value. A gap made by lost packets is
// interpolated evenly.
//
// # What a player saw
//
// Seen says what time a client shows, in three or four bytes. Send it with a shot, as a parameter of the procedure or as a field of an input. The
// server's Rewind then shows every actor at the time at which that client drew it:
//
//	var Shoot = actorrep.ServerRPC(func(c actorrep.Call, s *Soldier, p Shot) error {
//		view := game.in.Rewind(c.Peer, p.Seen)
//		hit, ok := view.Ray(p.From, p.To, rewind.ID(s.GUID()))     // hit.ID is the GUID of whom it hit
//
// The server keeps the same values in the same buffers, and takes reach and lateness from the client's claim, so both show the same position: to 4 mm on
// average at 5 m/s with 10 % loss (TestRewindShowsWhatWasSeen prints it). While a client has only the first values of an actor, it draws these, and
// the server doesn't know: under loss that lasts up to half a second after the actor appeared. The server limits a claim to what the connection's round trip, jitter and loss
// explain, or its longest round trip of the last 8 to 16 s, and to Config.MaxRewind.
//
// # Bounds
//
//	interpolated numbers of a class     24; a value of the game's own type counts 1 for each 8 bytes
//	values kept of an actor             48, of 192 bytes each; then the oldest is dropped
//	reach                               8 intervals; lateness, and reach * interval, are at most Config.MaxDelay each
//	actors in a view                    65536
package interp
