// Package rewind does lag compensation: it tests what a player hit in the world as that player saw it.
//
// A player aims at others as they were: their positions took half a round trip to arrive and are shown with an interpolation
// delay, and the shot takes another half round trip. A [History] keeps the poses of the last ticks. It makes a [View] of
// any time in between, which is queried with rays, spheres and capsules.
//
//	recorded     |--t0--|--t1--|--t2--|--t3--| now
//	                 ^
//	                 view: between t0 and t1, at most Config.MaxRewind before now
//
// The client knows that time best: it sends the time that its timeline showed when it fired (package interpolation), and
// the server clamps it. Without that, the server computes it with [ViewTime]. The clamp limits the advantage of players with high
// latency: others can be hit up to MaxRewind after they reached cover.
//
// # The caller's loop
//
//	h.Begin(now)                          // at the end of each tick
//	for each entity that can be hit { h.Add(id, pose) }
//
//	v := h.At(now, view)                  // when a shot arrives
//	hit, ok := v.Ray(from, to, shooter)
//
// A game that uses its own physics for hit tests calls Do instead. Do moves the recorded entities of the game's world to their past poses,
// calls a function, and moves them back, whatever the function did. Apply the hits that the function finds after Do.
//
// # Which entities are in a view
//
// Those in the snapshot at or before its time. An entity that is in the next snapshot too is interpolated, unless Teleport
// reports a jump; others have the pose of the first snapshot.
//
// # Bounds
//
//	snapshots     Config.Snapshots; then the oldest is dropped. A view before the oldest shows the oldest
//	entities      Config.MaxEntities a snapshot; Add of more is ErrFull
//	hitboxes      MaxHitboxes, 32, an entity; more are ignored and counted
package rewind
