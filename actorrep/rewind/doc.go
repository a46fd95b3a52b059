// Package rewind answers what a player hit in the world as that player saw it: lag
// compensation.
//
// A player aims at others as they were: their positions took half a round trip to come,
// and are shown an interpolation delay in the past; and the shot takes another half to arrive.
// A [History] keeps the poses of the last ticks, and makes a [View] of any time
// between them, to be asked with rays, spheres and capsules.
//
//	recorded     |--t0--|--t1--|--t2--|--t3--| now
//	                 ^
//	                 view: between t0 and t1, at most Config.MaxRewind before now
//
// What time that is the client knows best: it sends the time its timeline showed when it
// fired (package interpolation), and the server clamps it. A server that doesn't ask computes
// it with [ViewTime]. The clamp is what a player with a slow line may take from others: they are
// hit up to MaxRewind after they reached cover.
//
// # The caller's loop
//
//	h.Begin(now)                          // at the end of each tick
//	for each that can be hit { h.Add(id, pose) }
//
//	v := h.At(now, view)                  // a shot came
//	hit, ok := v.Ray(from, to, shooter)
//
// A game that asks its own physics lets Do put its world into the past instead: Do moves
// what was recorded to where it was, calls back, and puts it to where it is, whatever the
// callback did. What the callback finds should be acted on after Do.
//
// # Who is there
//
// Whoever was in the snapshot at or before the time. Those in both snapshots
// around it are between their poses, unless Teleport tells them apart; the others are where they were in
// the first.
//
// # Bounds
//
//	snapshots     Config.Snapshots; the oldest makes room, and a time before it is that time
//	entities      Config.MaxEntities a snapshot; Add of more is ErrFull
//	hitboxes      MaxHitboxes, 32, an entity; more are ignored and counted
package rewind
