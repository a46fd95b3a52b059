// Package actorrep replicates actors. A server's objects appear, change and disappear on its clients, and both ends call
// procedures at the other (Unreal's actor channels, object replicators and RPCs).
//
// An actor is a pointer to a struct that embeds [Base] and tags its replicated fields
// (package layout lists the tags). A [World] holds them, the same types at both ends:
//
//	type Soldier struct {
//		actorrep.Base
//		Pos    Vec                 `net:"q=0.01"`                    // compared with what was sent
//		Health actorrep.Var[uint8] `net:"max=100,notify=OnHealth"`   // marked as changed when it is set
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
// A game needs few of this package's names:
//
//	both ends   Base, Var, World.Register, RPCs, ServerRPC, ClientRPC, MulticastRPC, Reliable, RPC.Call, World.ChannelTypes,
//	            World.Step, World.All, Config.Failed
//	a server    NewServer, World.AddConn, World.RemoveConn, World.Spawn, World.Destroy, Base.SetOwner, CullDistance, Peer.SetViewTarget
//	a client    NewClient, Config.Spawned, Base.IsOwned, ErrNotOwner
//	in doubt    World.Explain
//
// # Three ways to make a class
//
// A plain tagged field is compared with the value sent last, once a tick for all connections together. A [Var] records its
// own changes, so an actor that has only Vars costs nothing while none is set. A class registered with [Manual] is compared
// only after MarkDirty. Plain fields and Vars mix in one struct and look the same on the wire. For classes that change often, package
// actorrep/gen generates setters that mark plain fields, and a comparison without reflection. For lists whose elements are
// added, changed and removed one by one, use package fastarray.
//
// # An actor's life over the wire
//
//	server                                              client
//	  | replication channel: the classes, by name   -->   | matches its own classes to them
//	  | opens a channel: guid, class, first values  -->   | makes the actor
//	  | records of many actors in one bunch         -->   | sets changed values
//	  |   (a nak marks the values of that packet as changed: their current values are sent)
//	  | the actor's channel: reliable calls         -->   | runs them
//	  |   <-- calls of the owner                          |
//	  | closes the channel, with the reason         -->   | the actor is destroyed, sleeps or is torn off
//
// An actor whose values don't fit one bunch is opened by several, sent as bandwidth allows. They take turns with other
// traffic. Its records and calls wait until the client has acked the last of them. The client's game sees the actor only
// when all have arrived.
//
// The formats of the bunches are in actorrep/internal/wire; that of the class descriptions is in schema.go.
//
// # What is sent to whom
//
// A [Relevancy] decides which actors are relevant to a connection. A change is noted at each connection that has
// the actor, so a tick's cost depends on how much has changed, not on how many actors there are. When bandwidth is short,
// updates are sent in order of priority: the actor's own priority, times how long it has waited, times a factor for its
// distance. Three kinds of traffic take turns: updates, openings of actors, and the bunches of what is larger than a packet. Those that want more than there is get
// about as much bandwidth each; one that wants less hardly waits. So while updates fill a connection, a world takes about twice as long to open.
// Changes of an actor that are larger than a packet are sent on its own channel, in turn with those of other such actors. An actor whose changes are that large in every Step has its small values sent once a turn too, so
// a position that must be smooth belongs to another actor. When more than 512 actors wait to be opened, counted over all connections, a Step opens 512 of them, or an
// eighth if that is more. Each connection gets an equal share and opens its most urgent actors first. As many are closed
// in a Step of those that haven't been relevant for Config.RelevantTimeout.
//
// A value is sent only to connections that its condition allows. While it isn't allowed its change is kept, and it is sent
// once it is, for example after a change of owner. Numbers with q=, rot= or quat= that keep changing are sent as the difference from a
// prediction that both ends make from up to twelve records that the client is known to have.
//
// # Procedures
//
// A procedure is a package-level variable, made by [ServerRPC], [ClientRPC] or [MulticastRPC], or by [ServerRPC0],
// [ClientRPC0] or [MulticastRPC0] when it has no parameters. Only the owner's client may call a server procedure, unless it
// has the option [AnyClient]. RPC.Handle sets the function later: use it when the function calls its own procedure, or when
// only one end has the function. Strings and slices of parameters are allocated for each call, except those of a
// [Borrowed] procedure. World.User holds whatever the game puts there; procedures reach it through Call.World, notifies through Base.World.
//
//	var Roar = actorrep.MulticastRPC0(func(c actorrep.Call, s *Soldier) error { return c.World.User.(*Game).play(s.roar) })
//
// # Order
//
// Actors are there, and values are set, as soon as they arrive. A client's game is told of them in Step. First, in order of arrival, come the actors that appeared,
// changed or disappeared; the notifies of one actor come in the order of its fields, and the old value they get is that of the last
// Step. Then the calls run, in order of arrival. Last come the actors that disappeared but had calls to run first.
//
// When a reliable call runs, its actor has all values that were set before the call, or newer ones, even under packet loss:
// the call carries the values that the client hasn't acked. That also holds right after Spawn, right before
// Destroy, SetOwner, SetCondition, LeaveGroup or TearOff, and for a dormant actor. When a call must wait, as the actor isn't open or its channel has no room, it comes without what
// the client may no longer see by then. Between different actors, and between an actor and its
// components, there is no order under loss. A client's call runs at the server when it arrives, in TickDispatch.
//
// A reference is a [Ref], or a bare netguid.GUID. It may arrive before its actor. Until then Ref.In and World.Find return
// nil; the field's notify is called again when the actor appears, each time it does.
//
// # Time
//
// Values carry the time of the server's Step that they come from; no field is needed for it. [World.ServerTime] is for
// interpolation.Timeline; [Base.ServerTime], which is valid in a notify too, is for interpolation.Buffer. Package interp does all of this:
// it interpolates fields with an interp tag, and rewinds them for hit tests on the server (lag compensation).
//
// # Recordings
//
// Package replay writes a world to a file and plays it back. A server treats a recording as a connection that loses
// nothing, sees everything and has its own update rate. A client treats it as a server.
//
// # Bounds
//
//	classes                          4096; their descriptions 16 KiB each and 1 MiB together
//	a name                           256 bytes
//	procedures of a class            256
//	units of a class                 1024, of which 64 may be other than plain numbers (package layout)
//	fast arrays of a class           2
//	a slice or string                1024 elements or bytes (cap=); a string 60,000 bytes, other values 8 KiB. Larger ones go in parts, as components, or by
//	                                 package message
//	records in flight                32768 a connection; then nothing more is sent until acks arrive
//	an opening in several bunches    1 MiB
//	references that wait             4096 on a client, of fields with a notify; above that it isn't called when their actor appears
//	actors on a client                256 MiB: their structs, and the numbers of each one's last 32 records, from which later records are
//	                                  predicted; in a replay unfinished openings too. Above that further actors aren't made, and
//	                                  Config.Failed, or the replay's Step, gets ErrActors
//	unacked openings in parts        256 KiB a connection, and one more opening; others wait
//	unfinished openings on a client  three eighths of its connection's MaxMemory, of which it shares three quarters with early bunches;
//	                                 above that it ends with ErrOpening, which names the actor
//	waiting reliable calls           64 an actor; above that the procedure's [Overflow] decides
//	unreliable calls                 8 of an actor in an update, two of one procedure; a server's of one update must fit into one packet together
//
// A client sends only calls. Anything else, or a call that no honest client would make, ends its connection. Frame numbers
// stay correct as long as a connection is sent something at least every 2^31 Steps: 414 days at 60 Steps a second.
//
// A World reuses the memory of finished calls: 4096 calls with 1 MiB of encoded parameters, and the decoded parameters of
// 4096 calls of each procedure. Only the slices and strings in parameters are allocated for each call; a Borrowed procedure
// reuses up to 1 MiB of those as well.
//
// Nothing is truncated. A number that doesn't fit its field is sent as the nearest that does, NaN as 0. Any other value
// that doesn't fit isn't sent, and clients keep the last one that did. Config.Failed is told once, Counters.Unfit
// counts it, and Explain says why. A parameter that doesn't fit is an error of its call. A value that one connection's ReliableBuffer or
// MaxMemory has no room for isn't sent there, and Failed is told once as well.
//
// # Tools
//
// [World.Explain] says why a connection has or lacks an actor or a field. [Peer.Attribution] says what a connection's bits
// were spent on; package budgettest tests that against a budget. Package schema says whether two builds of a game are compatible.
package actorrep

// The path of a value through the files:
//
//	server_compare    finds changes           server_relevancy, _spread, _priority  choose the receivers
//	server_gather     chooses what to send    server_open, _encode, _baseline       encode it
//	server_outlet     sends it on a channel   server_sent                           handles acks and losses
//	client_records    decodes records         client_mirror, _parts                 decode an actor's channel
//	client            tells the game
//
// On the way server_peer has a connection and the order of a Step's parts, server_view an actor as one connection knows it, server_departures
// the views that are about to go, and server_every those with a longer interval. server_trim gives back memory; server_explain, _attribution
// and _unsaid answer tools.
//
// Calls are in server_calls and client_calls, recordings in server_recording and client_playback. The other files belong to
// both ends: actors, classes and their schema, procedures. The wire formats are in internal/wire.
