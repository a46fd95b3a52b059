// Package prediction is client-side prediction: what a player controls moves at once on the player's client, while the server has the last word. A
// game of actors uses package predict, which binds this package to them.
//
// Both ends run the same function, [Model.Simulate], over a state S and inputs I of the game's own types. A [Client] simulates a move in the
// frame of its input, saves it, and sends it. A [Server] simulates the move over its own state when it arrives. When both results are the same, the
// server answers with an ack. Otherwise it answers with a correction, which is its state. The client then sets its state to the server's, and
// simulates all its later moves again.
//
//	client   move 1   move 2   move 3   move 4        state := server's after 2
//	            \        \        \        \             simulate 3, 4 again
//	             \        \        \        \                  ^
//	server        1        2: another result ---------/
//
// # The caller's loop
//
//	client, each frame                       server
//	  c.Receive(now, r)  for each reply        s.Receive(now, r)            each message
//	  c.Move(now, input)                       s.Tick(now)                  each tick
//	  c.Send(now, w)     until it's false      if ok, err := s.Reply(now, w); ok {...}
//	  draw c.State(), moved by c.Offset(now)   s.State() is the true state
//
// Send the messages as unreliable datagrams or bunches: each message makes up for lost ones before it. Draw the other players with package
// interpolation.
//
// # Time
//
// A move lasts from the timestamp of the move before it to its own, at most [Model].MaxDelta, at both ends. So both ends simulate the same
// steps, except where moves were lost. Timestamps are microseconds since the client was made, by the client's clock. There may be any time between
// two moves.
//
// # In ticks
//
// With [Model].Interval the simulation has ticks, whose times are the same at both ends. Each move is one tick, and its timestamp is the tick's
// time, a multiple of Interval. The client's ticks run ahead of the server's, so that a move arrives before the server simulates its tick. The
// server keeps the moves of the next 64 ticks. Its Tick simulates each tick once, when its time has come, with the first move that arrived for
// it. Moves that arrive later change nothing.
//
// When no move has arrived for a tick, the server simulates the tick with the last input, and corrects the player. After MaxForced, and before the
// first move, it uses the zero input. So the actor of a silent player still falls, for example. A client fills gaps between its moves in the
// same way.
//
// A client can't gain simulated time by sending more moves, or longer ones, so the guard of the next section isn't used. [Server.Tightest] says
// how early moves arrive; the client's clock should follow it, as package predict does.
//
// # What the server trusts
//
// The server trusts nothing but inputs. It only compares the state that the client sends. It doesn't simulate a move that isn't newer than the
// last one. Without Interval it also limits simulated time, by a sum that is never below -MaxDiscrepancy:
//
//	discrepancy += simulated time - elapsed time
//
// A client whose moves would raise the sum above MaxDiscrepancy runs a speed hack, or its network held its moves up for longer than
// that. The server counts it in SpeedHacks and shortens the move. Until the sum is 0 again, the client gets only a share of the elapsed time (PayBack).
// So in any span of time the simulated time is at most elapsed * (1 + Drift) + 2 * MaxDiscrepancy. The server moves a silent client on with its
// last input, for at most MaxForced. After that its state stands still.
//
// # Corrections
//
// Each correction has a number, which the client's moves return. Moves with an older number started from a state that the client no longer
// has, so the server doesn't compare them; it repeats the correction until a move returns its number. A client that has applied the correction
// treats a repeated one as an ack. With Interval, a client whose moves are all refused because they are too early or too late gets a new
// correction each time it has applied the last one.
//
// When the codec of the state rounds, set [ServerConfig].MaxError above the rounding error. With an exact codec MaxError may be 0: both ends
// then have the same state whenever no message is in flight.
//
// # Wire
//
// Low bits first. The caller marks which of its messages are moves and which are replies.
//
//	moves   8          number of the last correction applied
//	        1..4       number of moves less one, SerializeInt(16)
//	        1          the next field has 52 bits: the oldest timestamp is 9 minutes or more after the last acked one
//	        52 or 31   timestamp of the oldest move, µs, or its low 31 bits
//	        for each, oldest first:
//	          8..80    µs since the move before, packed; not for the oldest
//	          ...      input
//	        ...        claim: the state after the newest
//	reply   1          correction
//	        52         timestamp of the newest move simulated, µs
//	        8          number of the correction        when a correction
//	        ...        state                           when a correction
//
// # Bounds
//
//	saved moves of a client       MaxMoves, 96; then the oldest is dropped. A correction of an older move is replayed without it, and
//	                              corrected again
//	corrections applied at once   4 between two calls of Move or Send; then only the newest is kept, for the next call
//	moves in a message            16; the rest go with the next message
//	ticks without a move          64 between two moves of a client, and in a replay; further ones are skipped
//	moves simulated in a tick     MovesPerTick, 128; further ones are dropped, and later moves get their time
//	timestamp of a reply          at most 4 s ahead of the client's, 71 years before the first move; else it is malformed
package prediction
