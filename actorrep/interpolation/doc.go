// Package interpolation shows what others do: it plays snapshots that arrive
// unevenly as even movement, a little in the past.
//
// A [Timeline], one for each connection, learns from the arrivals how far in the past
// that must be, and says what time to show. A [Buffer], one for each thing that moves,
// holds its last snapshots and computes what it looked like then.
//
//	sent      |     |     |     |     |     |     |        at: the sender's time
//	arrived      |     |        | |         |    |         the one in the middle was lost
//	shown     <- delay ->|           a time between two snapshots that are both here
//
// # The delay
//
// Each arrival tells how far back the shown time would have had to be, so that up to
// this moment there were always two snapshots to go between: the time since the
// snapshot before it, plus how much longer than the fastest it took. That covers the
// sender's interval, jitter and loss in one number. The delay is the
// [Config].Quantile of the last [Config].Window of them, plus a margin, and the shown time
// moves towards it slowly (package netclock's Follower): it never goes back.
//
// # When the next snapshot isn't there
//
// A buffer goes on along the line of its last two, for at most MaxExtrapolation, then
// stands. It doesn't go between two snapshots that Teleport tells apart, nor on
// beyond them: the first is shown until the second's time, then the second.
//
// # The caller's loop
//
//	for each snapshot packet {
//		timeline.Arrived(now, at)
//		for each thing { thing.buffer.Push(at, pose) }
//	}
//	if t, ok := timeline.Now(now); ok {      // each frame
//		for each thing { pose, state := thing.buffer.At(t) }
//	}
//
// With package actorrep the sender's time is World.ServerTime, and of one actor's values Base.ServerTime.
//
// Tell a server that compensates lag the time shown (package rewind): it is what the
// player saw when firing.
//
// # Bounds
//
//	arrivals remembered   Config.Window, at most 128
//	snapshots in a buffer BufferConfig.Capacity; the oldest makes room
//	delay                 Config.MaxDelay; beyond it buffers extrapolate
package interpolation
