// Package predict makes prediction a property of an actor: its class says which fields are predicted and how an input moves them, and the
// rest is done: inputs are sampled at a fixed rate, felt at once by the player who gives them, sent until they are there,
// simulated by the server, acknowledged or corrected, and replayed after a correction.
//
// The moves, acks and corrections are those of package prediction. This package binds them to actors.
//
// # An actor that is predicted
//
//	type Keys struct{ Dir int8 }                                  // an input: numbers and bools, tagged as in package layout
//
//	type Runner struct {
//		actorrep.Base
//		X, Y float64 `net:"q=0.01,simulated" predict:"0.005,smooth"`
//		Fuel float32 `predict:""`                              // nobody else needs it
//	}
//
//	// Simulate moves the runner on by dt. Both ends run it, with the same inputs.
//	func (r *Runner) Simulate(in Keys, dt time.Duration) { r.X += 5 * float64(in.Dir) * dt.Seconds() }
//
//	runners, err := predict.Register(world, "Runner", predict.Config[*Runner, Keys]{Input: keyboard}, actorrep.CullDistance(100))
//
// Register takes the place of World.Register at both ends. The server gives a runner to a player with Possess. Each frame:
//
//	server                                      client
//	  TickDispatch                                TickDispatch
//	  runners.Tick(now)   ticks are simulated     world.Step(now)     corrections are applied here
//	  world.Step(now)                             runners.Tick(now)   inputs are sampled and felt here
//	  TickFlush                                   draw; TickFlush
//
// # The predict tag
//
// Numbers, bools, and arrays and structs of them may be predicted. The tag is the tolerance: how far the client's number may be off before the
// server corrects it, in the field's unit. Empty or 0 is exact. Behind a comma, smooth says that the number is a place where the
// actor is drawn: Offset smooths corrections of the first three of them. The difference between two numbers of a field with
// net:"rot=" is the short way round.
//
// What of these fields others are to see has a net tag as well, with a condition that leaves out the player himself, since what comes for him
// would be written over his prediction: simulated or skipowner. Register refuses others. A player's own state comes
// with the first correction, which the server sends right after Possess.
//
// # What the game may do
//
// On the server it may change predicted fields at any time, as when a player is pushed or put elsewhere: the player is corrected at
// once. On the player's client they are only to be read: Tick and corrections write them. Simulate may read what else is the same
// at both ends.
//
// A World.Local player, of a listen server or an offline game, is sampled and simulated in the server's ticks.
//
// # One time
//
// The simulation goes in ticks of 1/Rate seconds, at the same times at both ends; frames, and what is sent, go at rates of their own. The server
// simulates a tick of all actors before the next, each by its player's input for that tick. The client's ticks run ahead of the server's, so that an input is
// there just before its tick: the server says how early inputs come, and the client's clock follows by running up to 5 % faster or slower. A tick whose
// input hasn't come is simulated by the last one, and the player is corrected; Counters.Server.Missed counts it. At 100 ms ± 25 ms and 10 % loss that
// is less than 0.1 % of ticks, and inputs wait 80 ms on average, of which the jitter is 50: TestInputsComeInTime prints it. When the path becomes longer, inputs
// are in time again after as long as 5 % take: two seconds for 100 ms.
//
// After a pause of more than MaxCatchUp ticks a client leaves out the ticks before those. For a fixed tick of the game's own there is netclock.Accumulator.
//
// # Possession
//
// It ends with Unpossess, with another Possess, when the actor or the player goes, and when SetOwner makes the actor somebody else's. Possess and
// Unpossess may be called anywhere, within Simulate too: when a player gets into a tank, say. An actor that is possessed is awake: Tick wakes one
// that the game has put to sleep. A player who loses his actor from sight plays on when he sees it again, after a second at most.
//
// # Groups
//
// Actors that touch each other, such as a ball and the players around it, cars or pucks, are predicted together: a client predicts its own actor and all others of
// the group, with what happens between them, for the tick that its own input is for.
//
//	pitch, err := predict.NewGroup(world, predict.GroupConfig{Touch: collide})   // collide moves those that overlap; both ends
//	players, err := predict.Register(world, "Player", predict.Config[*Player, Keys]{Group: pitch, Input: keyboard})
//	balls, err := predict.Register(world, "Ball", predict.Config[*Ball, predict.NoInput]{Group: pitch})
//	err = players.Possess(player, peer, now)                                     // on the server; a member from now on
//	err = balls.Join(ball)                                                       // a member without a player
//	err = pitch.Tick(now)                                                        // each frame, in place of the classes' Tick
//
// In each tick all members are simulated, in the order of their ids, and then GroupConfig.Touch does what happens between them. A client has its own inputs for
// that, and of each other member the last one that it knows, carried on (through Config.ForceInput). Members without a player have the zero input.
//
// The server sends each player the states of a tick: of all members that the player sees, with the inputs of that tick. The client
// compares each with what it had predicted for that tick. When one is off by more than its tolerance, or another player's input is another one, all
// members go back to the oldest such tick and are simulated anew, with Touch, up to the present; a member of whose states of a tick in between the server told is set to
// it there. So states of different members may be of different ticks, and may be lost or come late: each counts for its own tick, and the next
// one of the same member heals what was lost. What is drawn of any member moves on smoothly: Offset.
//
// Predicted fields of a group's classes need no net tag for who plays in the group. With one they go to those who look on, and to recordings; to players they go
// twice then, unless the condition is a group of connections that players aren't in. On a client such a field shows the prediction as long as the actor is predicted, and the
// server's value afterwards. A client without an actor of its own in the group predicts none.
//
// The error that is left is that of others' inputs, which are as old as a round trip and what inputs wait: a ball that another player is about to hit flies on until then.
//
// # Both ends
//
// Both register the class by this package's Register, with the same predicted fields, tolerances and inputs: a class whose ends differ is told by
// actorrep.Config.Failed (ErrSchema: the procedures predict.Begin, Moves and Reply), at both ends, and isn't predicted; command bunchnet-schema
// tells it before. The Rate is the server's.
//
// # What appears
//
// A shell that a player fires is shown in the step of the key: Key names what appears in a step by the same number at both ends, and
// Spawns holds it on the client until the server's actor takes its place, or until it is clear that there is none.
//
// # Wire
//
// Two unreliable procedures of the class, "predict.Moves" and "predict.Reply", and a reliable one, "predict.Begin", for the first reply, so that it
// comes with the actor. Their parameter is
//
//	8            which possession of the actor it is about, modulo 256
//	packed int   bits of the message
//	...          a message of package prediction; before a reply the server's time:
//	               packed int   the length of a tick, µs
//	               1            an input has come; then, of the last ticks' the one that came latest:
//	                 8            its tick, modulo 256
//	                 packed int   how early it came, in 2^18 ns, in zigzag
//
// Classes of a group have a third unreliable one, "predict.States", with states of members in place of that message:
//
//	packed int   the tick's number: its time in lengths of a tick
//	for each     1, of those told; the receiver's own is the first
//	  packed int   id of the actor
//	  packed int   bits of its state and input
//	  2            what moved it: 0 no player, 1 an input, 2 nothing, as its player is silent, 3 the receiver
//	  ...          state, as a claim
//	  ...          input, of 1
//	0
//	1            these are all members that the receiver sees
//
// In these, an input is as package layout writes it; a state is the predicted numbers, each as it is in memory; a claim is each
// number as it is in memory when its tolerance is 0, and else as a packed int: the nearest half tolerance, in zigzag.
//
// # Bounds
//
// Of a group: 256 members; a client goes back 64 ticks at most (GroupConfig.MaxBack) and keeps 128 of each member, 10 KiB for four numbers and two of input; two messages of
// 384 bytes a player and update, and those members that they have no room for go with the next; states of later ticks than the client keeps, and what isn't finite, are refused.
// 100 members that each are compared with each are simulated for 12 ticks in 0.6 ms (BenchmarkGroupRewind).
//
// 32 predicted numbers a class, 32 numbers an input, 384 bytes a message, 1024 things that wait for the server's. What a client sends that is no move of a runner that it
// possesses is counted and does nothing; inputs that aren't finite are malformed. Each tick is
// simulated once, so that a player gets no more time than the server's own; of inputs for the next 64 ticks, the first for each counts.
package predict
