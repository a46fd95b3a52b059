// Package netclock tells a client what time it is at the server.
//
// The client asks regularly, and the server answers with its own time. Of the last answers the client uses the one with the shortest
// round trip, because delays only make an answer worse. With a round trip of rtt the error is at most rtt/2, and almost 0 when
// both directions take equally long. Two answers that can't both be right mean that a clock was set, or stood still: then only the newest
// counts.
//
// The client reads a [Follower] of that estimate. It never goes back, and runs at most a few percent faster or slower than the
// local clock, so movement based on it is smooth. Only an error above [FollowerConfig.Jump] is handled differently: the time jumps forward,
// or stands still until the estimate has caught up. Both are counted.
// A local clock that is set back by a second or more counts as one that stood still.
//
// Use it for whatever must agree with the server's time: starts of rounds, cooldowns, the view time of a shot (package
// rewind). Interpolation doesn't need it: its timeline follows the arrivals themselves.
//
// # The caller's loop
//
//	client                                          server
//	if ok, err := c.Request(now, w); ok { send }    err := netclock.Answer(now, arrived, r, w); send
//	err := c.Reply(now, r)
//	t, ok := c.ServerTime(now)
//	wake at c.NextDeadline()
//
// # Wire
//
// Low bits come first. The caller's framing must distinguish requests from other messages.
//
//	request   16      number
//	reply     16      number of the request
//	          8..80   server time at which the request arrived, µs, packed
//	          8..40   µs from then until the reply was written, packed, at most 10 s
//
// # Bounds
//
//	requests waiting for a reply   16; replies to older ones are ignored
//	samples                        Config.Window, at most 64
//	server time                    below 2^62 ns, 146 years
package netclock
