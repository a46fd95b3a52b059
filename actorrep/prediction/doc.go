// Package prediction lets a player's own thing move at once, while the server has the
// last word: saved moves, acks and corrections, rewind and replay.
//
// Both ends run the same function, [Model.Simulate], over a state S and inputs I of the
// game's own types. A [Client] runs it in the frame of the input, remembers the
// move, and tells the server. A [Server] runs it when the move arrives, over its own state, and
// answers either that both came to the same (an ack), or with its own state (a
// correction); then the client goes back to that, and runs all its later moves again.
//
//	client   move 1   move 2   move 3   move 4        state := server's after 2
//	            \        \        \        \             simulate 3, 4 again
//	             \        \        \        \                  ^
//	server        1        2: not what the client says -------/
//
// # The caller's loop
//
//	client, each frame                       server
//	  c.Move(now, input)                       s.Receive(now, r)            each message
//	  if ok, err := c.Send(now, w); ok {...}   s.Tick(now)                  each tick
//	  draw c.State(), shifted by c.Offset(now) if ok, err := s.Reply(now, w); ok {...}
//	  c.Receive(now, r)  for each reply        s.State() is the truth
//
// Messages go as unreliable datagrams or bunches: what is lost is made good by
// the next. Draw the other players with package interpolation.
//
// # Time
//
// A move lasts from the move before it to its own timestamp, at most [Model].MaxDelta, at both
// ends: so both integrate the same steps, but where moves were lost. Timestamps are
// microseconds of the client's clock since it began; a player may do nothing for as long as he likes.
//
// # In ticks
//
// With [Model].Interval every move is one tick of a time that both ends share: its timestamp is the tick's time, a multiple of the Interval. The
// client's runs ahead of the server's, so that a move is there before the server comes to its tick. The server keeps the moves of the next 64 ticks, and
// Tick simulates each tick once, when its time has come: by the move that came first for it. While nothing comes it is the last one, for MaxForced at most, and
// after that the zero input, as before the first move; and the player is corrected. So a thing goes on falling when its player is silent, and moves that come too
// late change nothing. The client does the same for the ticks between the server's state and its first move after it. Whoever sends more moves, or longer ones, gets
// no more time by that: the guard below isn't needed. [Server.Tightest] says how early moves come, which a client's clock follows; package predict does that.
//
// # What the server trusts
//
// Inputs, and nothing else. The client's state comes along only to be compared.
// A move isn't simulated when its timestamp isn't newer than the last, and time
// is held to the server's:
//
//	discrepancy += simulated - elapsed, from -MaxDiscrepancy up
//
// When it would pass +MaxDiscrepancy the client is a speed hack (or its network stalled
// worse than the bound allows): that is counted, the move is cut, and until the
// discrepancy is paid back the client gets only a share of the server's time. So over any
// time the simulated time is at most elapsed * (1 + Drift) + 2 * MaxDiscrepancy.
// A client that falls silent goes on moving with its last input, for MaxForced at most; then it stands still. With Model.Interval it is simulated on.
//
// # Corrections
//
// Each has a number, which the client's moves carry back. Until they do they are made of
// a state the client has left already, and aren't compared; meanwhile the correction is
// sent again and again. A repeated one is only an ack to a client that has it.
// With Model.Interval, a client whose moves are all refused, as too late or too early, gets
// another correction for each that it has applied.
//
// A codec of the state that rounds needs a [ServerConfig].MaxError over its rounding. With an exact
// one MaxError may be 0, and the ends are equal whenever nothing is under way.
//
// # Wire
//
// Low bits first; what tells moves from other messages is the caller's.
//
//	moves   8          number of the last correction applied
//	        1..4       moves less one, SerializeInt(16)
//	        1          the timestamp of the oldest is whole: it is 9 minutes or more after one acknowledged
//	        52 or 31   timestamp of the oldest, µs; 31 are its low bits
//	        for each, oldest first:
//	          8..80    µs since the one before, packed; not for the oldest
//	          ...      input
//	        ...        claim: the state after the newest
//	reply   1          correction
//	        52         timestamp of the newest move simulated, µs
//	        8          number of the correction        when a correction
//	        ...        state                           when a correction
//
// # Bounds
//
//	saved moves of a client       MaxMoves, 96: the oldest is forgotten; a correction from before it
//	                              is replayed without it, and is corrected again
//	corrections applied at once   4 between two calls of Move or Send: of more the newest waits for the next call
//	moves in a message            16: with more unsent the next ones go with the next message
//	ticks without a move          64 between two moves of a client, and in the replay of a correction: others are left out
//	moves simulated in a tick     MovesPerTick, 128: others are dropped, their time goes to later ones
//	time ahead of the client      4 s: replies beyond are malformed; before the first move 71 years
package prediction
