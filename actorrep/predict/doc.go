// Package predict adds client-side prediction to actors. A class says which fields are predicted and how an input changes them. The
// package does the rest: it samples inputs at a fixed rate, applies them at once on the player's client, sends them until the
// server has them, simulates them on the server, and acknowledges or corrects the result. After a correction the client
// replays its newer inputs.
//
// The moves, acks and corrections are those of package prediction; this package binds them to actors.
//
// # An actor that is predicted
//
//	type Keys struct{ Dir int8 }                                  // an input: numbers and bools, tagged as in package layout
//
//	type Runner struct {
//		actorrep.Base
//		X, Y float64 `net:"q=0.01,simulated" predict:"0.005,smooth"`
//		Fuel float32 `predict:""`                              // not sent to other players
//	}
//
//	// Simulate advances the runner by dt. Both ends run it, with the same inputs.
//	func (r *Runner) Simulate(in Keys, dt time.Duration) { r.X += 5 * float64(in.Dir) * dt.Seconds() }
//
//	runners, err := predict.Register(world, "Runner", predict.Config[*Runner, Keys]{Input: keyboard}, actorrep.CullDistance(100))
//
// Register replaces World.Register at both ends. The server gives a runner to a player with Possess, and again when the player is back with
// another connection. Each frame:
//
//	server                                      client
//	  TickDispatch                                TickDispatch
//	  runners.Tick(now)   simulates due ticks     world.Step(now)     applies corrections
//	  world.Step(now)                             runners.Tick(now)   samples and applies inputs
//	  TickFlush                                   draw; TickFlush
//
// # The predict tag
//
// Numbers, bools, and arrays and structs of them may be predicted. The tag is the tolerance, in the field's unit: the server corrects the
// client when its number is off by more. Empty or 0 is exact. After a comma, smooth marks a coordinate at which the actor is
// drawn; Offset smooths corrections of the first three of these. In a field with net:"rot=" the difference between
// two numbers is taken the short way round.
//
// A predicted field that other players see has a net tag as well. Its condition must exclude the predicting player, because the received
// value would overwrite the prediction: use simulated or skipowner. Register returns an error for others. The player gets
// the initial state with the first correction, which the server sends right after Possess. Until that is there, which may be a frame later than the actor, the fields are zero and
// Predicting is false: draw the actor from then on.
//
// Make what else Simulate reads and the server may change, such as the speed of a player who wears boots, a predicted field too. A tick that is simulated again then has the value of that tick,
// not the newest one. A change costs one correction. With another value at the client than at the server, for example of a field with the condition initial, the player is corrected again and again.
//
// # What the game may do
//
// On the server the game may change predicted fields at any time, for example to push or teleport a player: the player is corrected at
// once. On the player's client the game may only read them: Tick and corrections write them. Simulate may also read anything
// else that is the same at both ends.
//
// The inputs of a World.Local player, of a listen server or an offline game, are sampled and simulated in the server's ticks. So are those of a server's own players (bots): Possess them with
// World.Local, and have Config.Input decide for each.
//
// # One time
//
// The simulation runs in ticks of 1/Rate seconds, whose times are the same at both ends. Frames and messages have rates of their own. The server
// simulates a tick of all actors before the next tick, each with its player's input for that tick. The client's ticks run ahead of the
// server's, so that an input arrives just before its tick. The server says how early inputs arrive, and the client's clock adapts by
// running up to 5 % faster or slower. While it hears nothing it goes on with the drift between both clocks that it has measured.
//
// When an input hasn't arrived, the tick is simulated with the last one and the player is corrected; Counters.Server.Missed counts
// these. Before the first input, and when none has arrived for MaxForced, it is simulated with the zero input, which should be that of a player who does nothing;
// Counters.Server.Idle counts these. So a silent player's actor falls like any other. Inputs that arrive after their tick change nothing. At 100 ms ± 25 ms and 10 % loss that is less than 0.1 % of ticks, and inputs wait 80 ms on average, 50 ms of which are for the
// jitter (TestInputsComeInTime prints it). When the latency grows, inputs are in time again once the clock has caught up at 5 %: two
// seconds for 100 ms.
//
// A server keeps a player's inputs for 64 ticks, and learns only in its next frame that some came late. So its frames must be shorter than half of that: then hardly more
// ticks lack their input than messages are lost (TestSlowServer, 60 ticks a second and 2 % loss: 0.3 % of the ticks with frames of 400 ms, 2 % with 500 ms). With server frames of 800 ms a
// sixth of the ticks lack theirs, and with frames of a second a third. A client may have frames of a second: with a MaxCatchUp of 64 about as many ticks lack their input as the path loses
// messages. With 30 ticks a second or fewer that holds for a server's frames of a second, too (TestFramesOfASecond).
//
// After a pause of more than MaxCatchUp ticks a client skips the oldest ones. After a frame of a second or more that is more than four times as long as the frames
// before it, a client measures anew how early its inputs come, and its time may jump. Within five seconds of a pause of 0.1 to 10 s inputs are in
// time again (TestStandingStill). A client's clock that goes back costs nothing; after one that leaps ahead inputs are in time again a second and 24 ticks later, or, where the
// server has kept its moves, after the length of the leap as well (TestLeapsOfTheClock). For a fixed tick of the game's own use netclock.Accumulator.
//
// # Possession
//
// A possession ends with Unpossess, with another Possess, when the actor is destroyed or the player leaves, and when SetOwner gives the actor to
// somebody else. Possess and Unpossess may be called anywhere, even in Simulate, for example when a player gets into a tank. Tick
// wakes a possessed actor that is dormant. A player whose own actor stopped being relevant continues at most a second
// after it is relevant again.
//
// # From server to server
//
// A player's actor goes to another server with its inputs under way: each is simulated once, at one of both, and the player sees no jump.
//
//	the server that it leaves             the next server                              the client, with a World for each
//	  state, err := a.Depart(actor, nil)                                                 b.Follow(a)
//	  state and id go to the next    -->    world.SpawnAs(actor, nil, id)
//	                                        b.Arrive(actor, player, state, now)    -->   the prediction goes on in b
//	                                                                               <--   the inputs that a hasn't simulated
//	  when the connection has ended,        waits for them, simulates what is due
//	  world.Destroy(actor)
//
// The servers' clocks may differ: a player's ticks keep the numbers that they have. The classes' Rate must be the same. Depart's bytes are
//
//	32           what both servers must agree on: a hash of the predicted numbers and the input
//	packed int   time of the last tick, µs
//	packed int   how early inputs come, µs
//	1            an input has come
//	...          state, as in a correction
//	...          the last input
//
// A member of a group can't depart.
//
// # Groups
//
// Actors that collide with each other, such as cars, or a ball and the players around it, are predicted together in a group. A
// client predicts its own actor and all others of the group, and their collisions, for the tick of its own newest input.
//
//	pitch, err := predict.NewGroup(world, predict.GroupConfig{Touch: collide})   // collide separates members that overlap; both ends
//	players, err := predict.Register(world, "Player", predict.Config[*Player, Keys]{Group: pitch, Input: keyboard})
//	balls, err := predict.Register(world, "Ball", predict.Config[*Ball, predict.NoInput]{Group: pitch})
//	err = players.Possess(player, peer, now)                                     // on the server; a member from now on
//	err = balls.Join(ball)                                                       // a member without a player
//	err = pitch.Tick(now)                                                        // each frame, in place of the classes' Tick
//
// In each tick all members are simulated, in the order of their ids. Then GroupConfig.Touch handles what happens between them. A client uses its own
// inputs, and for each other player the last input that it knows, passed through Config.ForceInput. Members without a player have the zero input, and so has
// one whose inputs haven't arrived for MaxForced.
//
// The server sends each player the states of all members that the player sees, with their inputs, for one tick. The client
// compares each with its prediction for that tick. When a state is off by more than its tolerance, or an input differs, the client rewinds
// all members to the oldest such tick and simulates them again, with Touch, up to the present. Where it has a server state of a member
// for a tick in between, it sets the member to it. So states of different members may be of different ticks, and may be lost or
// late: each applies to its own tick, and the member's next state makes up for a lost one. Offset smooths how members are drawn.
//
// Predicted fields of a group's classes need no net tag for the players of the group. With one they are sent to spectators and
// recordings. Players would then get them twice; to avoid that, use the condition group= with a connection group that players aren't in. On a
// client such a field has the predicted value while the actor is predicted, and the server's value afterwards. A client without an actor of
// its own in the group predicts none.
//
// What can't be predicted is other players' new inputs. They arrive a round trip late, plus the time that inputs wait: a ball that another
// player is about to hit flies on until then.
//
// # Both ends
//
// Both ends register the class with this package's Register, with the same predicted fields, tolerances and inputs. A class that differs isn't
// predicted, and actorrep.Config.Failed gets an ErrSchema at both ends that names the procedures predict.Begin, Moves and Reply. The command
// bunchnet-schema finds such differences beforehand. The server's Rate is used.
//
// # Predicted spawns
//
// A shell that a player fires appears on the client in the tick of the input. Key gives what appears in a tick the same number at both ends. Spawns
// keeps the client's shell until the server's actor replaces it, or until it is certain that the server has none.
//
// # Wire
//
// Each class has two unreliable procedures, "predict.Moves" and "predict.Reply", and a reliable one, "predict.Begin", for the first
// reply, so that it arrives with the actor. Their parameter is
//
//	8            number of the possession, modulo 256
//	packed int   bits of the message
//	...          a message of package prediction; before a reply the server's time:
//	               packed int   the length of a tick, µs
//	               1            an input has arrived; then, for the latest input of the last ticks:
//	                 8            its tick, modulo 256
//	                 packed int   how early it arrived, in 2^18 ns, in zigzag
//
// Classes of a group have a third unreliable procedure, "predict.States", with the states of members instead of that message:
//
//	packed int   number of the tick: its time divided by a tick's length
//	for each     1, for each member; the receiver's own is the first
//	  packed int   id of the actor
//	  packed int   bits of its state and input
//	  2            what moved it: 0 the zero input, 1 its player's, 2 the receiver's
//	  ...          state, as a claim
//	  ...          input, after 1
//	0
//	1            these are all members that the receiver sees
//
// An input is written as by package layout. A state is the predicted numbers, each as in memory. A claim is the same numbers, but each that
// has a tolerance is a packed int: its nearest multiple of half the tolerance, in zigzag.
//
// # Bounds
//
//	predicted numbers of a class   32
//	numbers of an input            32
//	a message                      384 bytes
//	actors of a player             16 of a class: 50 KB each on its client. World.Local has no bound
//	predicted spawns               1024 waiting
//	members of a group             256
//	a group's rewind               64 ticks at most (GroupConfig.MaxBack)
//	ticks kept on a client         128 of each member: 10 KiB for four numbers and two of input
//	a group's updates              two messages a player; members without room are sent with the next update
//
// The server counts and ignores a client's moves for actors that it doesn't possess. Inputs that aren't finite are malformed. The server
// simulates each tick once, so a player can't gain time. It accepts inputs for the next 64 ticks; the first for each tick counts. A
// client refuses a group's states that are of later ticks than it keeps, or aren't finite. Malformed messages are counted;
// actorrep.Config.Failed gets the first of a possession on a server, and the first of a class on a client.
//
// A rewind of 12 ticks with 100 members, each checked against each, takes 0.6 ms (BenchmarkGroupRewind).
package predict
