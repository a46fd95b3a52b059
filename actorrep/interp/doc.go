// Package interp makes interpolation a property of an actor: tags say which fields others see move, and the rest is done. A client draws them between
// the values that have come, a little in the past, and a server shows them to a shot as the player who fired it saw them: lag compensation.
//
// The buffers are those of package interpolation, the shapes those of package rewind. This package binds them to actors.
//
// # An actor that is interpolated
//
//	type Soldier struct {
//		actorrep.Base
//		Pos   Vec     `net:"q=0.01" interp:"teleport=5"` // what moves farther at once was put there
//		Rot   Quat    `net:"quat=15" interp:""`          // the short way round
//		Spawn uint8   `net:"" interp:"jump"`             // the server counts it up when it puts the soldier elsewhere
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
// Classes are registered with the world as ever, by World.Register or package predict. At gives a player's own, predicted actor as it is,
// so that drawing need not tell them apart.
//
// # The interp tag
//
// An empty tag is a straight line for numbers, and structs and arrays of them; integers are rounded, bools are the older value until
// the time of the newer. Options:
//
//	angle        an angle in degrees, the short way round; so is a field with net:"rot="
//	radians      an angle in radians
//	quat         four floats that are a rotation; so is a field with net:"quat="
//	step         the older value until the time of the newer
//	jump         the same; when the field changes, the actor has been put elsewhere, and nobody is to see it on its way
//	teleport=5   a field that moves by more than 5 from one value to the next was put there: the actor is elsewhere
//
// Within a struct, fields may have tags of their own. ClassConfig.Lerps interpolates types of the game's own. Class.Teleport is the call for
// what only a client's game knows.
//
// # The delay
//
// The time of a value is the server's, of the Step that it is from; no field is needed for it. What is shown of an actor is
//
//	newest that can be here  -  lateness  -  reach * interval
//
// Lateness is how much later than the fastest the last 256 values came (of 200, 199 came earlier; packets that were held up behind a lost one count each). The interval is how often this
// actor's values really come: the median of its last 9, so that what has a low UpdateFrequency, or little bandwidth, is shown later than what hasn't. Reach
// is 1 without loss, 2 from 0.4 % of packets lost on, 3 from 6 % on: so that no more than 0.4 % of draws find a value missing. Each of
// them changes so slowly that nobody sees it, and what is drawn never goes back. When a value is missing the actor stands until it comes; nothing is
// drawn where no value of the server's says that it was.
//
// # Rest
//
// Nothing is sent while nothing changes, so the next value after a rest comes after a long gap. When no packets were missed in it, or fewer than values
// would have come, the actor was at rest until one interval before that value, and is drawn so; a gap of lost packets is gone
// through evenly.
//
// # What a player saw
//
// A client tells by Seen what time it shows, in three or four bytes that go with a shot: as a parameter of its procedure, or as a field of an input. The
// server's Rewind shows every actor at the time at which that client drew it:
//
//	var Shoot = actorrep.ServerRPC(func(c actorrep.Call, s *Soldier, p Shot) error {
//		view := game.in.Rewind(c.Peer, p.Seen)
//		hit, ok := view.Ray(p.From, p.To, rewind.ID(s.GUID()))     // hit.ID is the GUID of whom it hit
//
// The server keeps the same values in the same buffers, and knows reach and lateness from the claim, so that both show the same place: to 4 mm on average
// at 5 m/s, with 10 % loss; TestRewindShowsWhatWasSeen prints it. A claim is believed as far as the connection's round trip, its jitter and its loss explain it, and
// for Config.MaxRewind at most.
//
// # Bounds
//
//	interpolated numbers of a class     24; a type of the game's counts 1 for each 8 bytes
//	values kept of an actor             48, of 192 bytes each; the oldest makes room
//	reach                               8 intervals; interval and lateness add Config.MaxDelay each at most
//	actors in a view                    65536
package interp
