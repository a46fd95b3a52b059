// Package interpolation turns snapshots that arrive unevenly into smooth movement, shown a little in the past.
//
// A [Timeline], one for each connection, learns from the arrivals how far in the past that must be, and says what time
// to show. A [Buffer], one for each moving thing, keeps its last snapshots and computes the state at that time.
//
//	sent      |     |     |     |     |     |     |        at: the sender's time
//	arrived      |     |        | |         |    |         the one in the middle was lost
//	shown     <- delay ->|           a time between two snapshots that have both arrived
//
// # The delay
//
// Each arrival shows what delay would have been enough to always have two snapshots to interpolate between: the time since
// the snapshot before it, plus how much longer than the fastest one it took. That covers the sender's interval, jitter and
// loss in one number. The delay is the [Config].Quantile of the last [Config].Window of these numbers, plus a margin. The
// shown time approaches it slowly (netclock.Follower) and never goes back.
//
// # When the next snapshot isn't there
//
// The buffer extrapolates from the last two for at most MaxExtrapolation, then stands still. When Teleport reports a jump
// between two snapshots it neither interpolates nor extrapolates: it shows the first until the second's time, then the second.
//
// # The caller's loop
//
//	for each snapshot packet {
//		timeline.Arrived(now, at)
//		for each thing { thing.buffer.Push(at, pose) }
//	}
//	if t, ok := timeline.Shown(now); ok {      // each frame
//		for each thing { pose, state := thing.buffer.At(t) }
//	}
//
// With package actorrep the sender's time is World.ServerTime; for one actor's values it is Base.ServerTime.
//
// For lag compensation (package rewind), send the shown time to the server with each shot: it is what the player saw.
//
// # Bounds
//
//	arrivals remembered   Config.Window, at most 256
//	snapshots in a buffer BufferConfig.Capacity; then the oldest is dropped
//	delay                 Config.MaxDelay; when more is needed, buffers extrapolate
package interpolation
