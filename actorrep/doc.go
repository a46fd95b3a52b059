// Package actorrep replicates actors: a server's objects appear, change and
// disappear on its clients, and procedures are called across (Unreal's actor channels, object replicators and RPCs).
//
// An actor is a pointer to a struct that embeds [Base] and tags its replicated fields
// (package layout lists the tags). A [World] holds them, the same types at both ends:
//
//	type Soldier struct {
//		actorrep.Base
//		Pos    Vec                 `net:"q=0.01"`                    // compared with what was sent
//		Health actorrep.Var[uint8] `net:"max=100,notify=OnHealth"`   // tells when it is set
//	}
//
//	var Fire = actorrep.ServerRPC(func(c actorrep.Call, s *Soldier, d Dir) error { ... }, actorrep.Reliable)
//
//	world := actorrep.NewServer(actorrep.Config{})                   // NewClient at the other end
//	err := world.Register("Soldier", (*Soldier)(nil), actorrep.RPCs{"Fire": Fire}, actorrep.CullDistance(150))
//	... driver.Config{Channels: world.ChannelTypes(), Joined: func(c *driver.Conn) { peer := world.AddConn(c) }}
//	err = world.Spawn(&Soldier{})
//	each tick: TickDispatch; the game's step; world.Step(now); TickFlush
//
// # Three ways to make a class
//
// Plain tagged fields are compared with the values sent last, once a tick for all connections together. A
// [Var] notes its own changes, so that an actor of Vars costs nothing while nothing is set. A class registered with [Manual]
// is compared after MarkDirty only. They mix in one struct, and look the same on the wire. For classes that change much, package
// actorrep/gen writes setters that mark plain fields, and a comparison without reflection. Lists of which elements come, change and
// go are of package fastarray.
//
// # An actor's life over the wire
//
//	server                                              client
//	  | replication channel: the classes, by name   -->   | finds its own beside them
//	  | opens a channel: guid, class, first values  -->   | makes the actor
//	  | records of many actors in one bunch         -->   | sets changed values
//	  |   (a nak makes the values of that packet dirty again: what is sent then is their value then)
//	  | the actor's channel: reliable calls         -->   | runs them
//	  |   <-- calls of the owner                          |
//	  | closes the channel, with the reason         -->   | the actor goes, sleeps or is left to it
//
// An actor with more values than a bunch holds is opened by several, one after the other as bandwidth allows, in turn with all
// else. Its records and calls wait until the client has acked the last, and the client's game hears of it only then.
//
// The bunches are drawn in actorrep/internal/wire, where they are written and read; the classes at World.describe.
//
// # What is sent to whom
//
// A [ReplicationDriver] says which actors are relevant to a connection. What changes is noted with each connection that
// has the actor, so that a tick costs as much as has changed, however many actors there are. What a connection
// is to be told goes in order of priority when bandwidth is short: an actor's own priority, by how long it
// waits, by distance. When more than 512 actors wait to be opened, at all connections together, a Step opens 512 of them, or an eighth if that is more:
// of each connection the most urgent, as many of each as far as it has them. Values are sent only to whom their conditions allow; what isn't allowed now is kept
// and sent when it is, as after a change of owner. Numbers with q=, rot= or quat= that
// move are sent as what they are off from where both ends expect them, by up to twelve records that the client is known to have.
//
// # Procedures
//
// A procedure is a package's variable, made by [ServerRPC], [ClientRPC] or [MulticastRPC], or by [ServerRPC0] and its like when it has no
// parameters. The owner's client alone calls a server procedure, unless that is [AnyClient]'s. A function that leads back to its own
// procedure, and one that only one end has, is set by RPC.Handle. Strings and slices of parameters are made anew for each call,
// but those of a [Borrowed] procedure. World.User is the game's, where procedures (Call.World) and notifies (Base.World) find it.
//
//	var Roar = actorrep.MulticastRPC0(func(c actorrep.Call, s *Soldier) error { return c.World.User.(*Game).play(s.roar) })
//
// # Order
//
// What arrives sets values at once; a client's game is told in Step: who appeared, changed and went, in the order of
// arrival; for one actor its notifies in the order of its fields, with the values of the last Step; then the calls, in the order
// of arrival; last, who went and had calls to run before. When a reliable call runs, its actor has all values that were
// set before the call, or newer ones, whatever was lost: the call brings along those that the client hasn't acked. That holds for a call
// right after Spawn, right before Destroy, SetOwner or TearOff, and to an actor that sleeps. Between different
// actors, components too, there is no order under loss. A client's calls run at the server when they arrive, in its
// TickDispatch.
//
// References are of type [Ref], or a bare netguid.GUID. One may come before its actor: Ref.In, or World.Find, is nil then, and
// the field's notify is called again when the actor is there, and whenever it is there again.
//
// # Time
//
// Values come with the time of the server's Step that they are from: [World.ServerTime] for interpolation.Timeline, [Base.ServerTime],
// in a notify too, for interpolation.Buffer. No field is needed for that. Package interp does all of it: fields with an interp tag are
// drawn between their values, and shown to a server's shots as the player saw them.
//
// # Recordings
//
// Package replay writes a world to a file and plays it. To a server a recording is a connection that loses nothing, sees everything and
// has a pace of its own; to a client it is a server.
//
// # Bounds
//
// 4096 classes, with 256 procedures and 16 KiB of names each and 1 MiB together; 1024 units a class, of which 64 aren't plain numbers (package layout), two fast arrays; 1024 elements of a slice or bytes of a string (cap=), 8 KiB a value; 32768
// records in flight a connection, then nothing more is sent until acks come; openings in several bunches 1 MiB each, and
// what a client keeps of unfinished ones within half the MaxMemory of its connection, else it ends with ErrOpening; 64 reliable calls an actor that wait for
// room, and what happens then is the procedure's [Overflow]; 8 unreliable calls an update, two of a kind. A
// client sends nothing but calls; anything else, or a call no honest client would make, ends its connection. Frames are
// right as long as a connection is told something in every 2^31 Steps: 414 days at 60 a second.
//
// A World keeps the memory of calls that are over, for others: of 4096, with 1 MiB of encoded parameters, and decoded ones of
// 4096 calls of each procedure. Only what parameters point to is made anew each time: slices, strings. Borrowed procedures keep
// 1 MiB of these each.
//
// Nothing is cut: a value that doesn't fit its field isn't sent, so that clients keep the last one that did; of numbers alone
// the nearest that fits is sent, 0 for NaN. Config.Failed is told once, Counters.Unfit counts, Explain says
// why. A parameter that doesn't fit is an error of its call.
//
// # Tools
//
// [World.Explain] says why a connection has an actor or a field, or hasn't. [Peer.Attribution] says where a
// connection's bits went; package budgettest holds that to a budget. Package schema says whether two builds of a game may meet.
package actorrep

// A value's way through the files:
//
//	server_compare    what changed            server_relevancy, _spread, _priority  who is to have it
//	server_gather     what goes now           server_open, _encode, _baseline       in which bits
//	server_outlet     over which channel      server_sent                           arrived or lost
//	client_records    what came in records    client_mirror, _parts                 on an actor's channel
//	client            what the game is told
//
// Calls are in server_calls and client_calls, recordings in server_recording and client_playback. The other files are what both ends know:
// actors, classes and their schema, procedures. The bits are drawn in internal/wire.
