// Package netclock tells a client what time it is at the server.
//
// The client asks now and then, the server answers with its own time, and of the last
// answers the one that was fastest there and back is believed: whatever else
// delayed a datagram can only have made its answer worse. With round trips of rtt
// the error is at most rtt/2, and nearly nothing when both ways take equally long.
//
// What the client then reads is a [Follower] of that estimate: it never goes back,
// and runs at most a few percent faster or slower than the local clock, so what
// moves by it neither jumps nor stutters. Only an error of more than
// [FollowerConfig.Jump] is not slewed away: forward it is jumped over, backward the time
// stands until it is met. Both are counted.
//
// Choose it for what must agree on time with the server: starts of rounds, cooldowns,
// the view time of a shot (package rewind). Interpolation doesn't need it: its
// timeline follows the arrivals themselves.
//
// # The caller's loop
//
//	client                                          server
//	if ok, err := c.Request(now, w); ok { send }    err := netclock.Answer(now, arrived, r, w); send
//	err := c.Reply(now, r)
//	t, ok := c.Now(now)
//	wake at c.NextDeadline()
//
// # Wire
//
// Low bits first; what tells a request from other messages is the caller's.
//
//	request   16      number
//	reply     16      number of the request
//	          8..80   server time at which the request came, µs, packed
//	          8..40   µs from then until the reply was written, packed, at most 10 s
//
// # Bounds
//
//	requests waiting for a reply   16; an older one's reply is no longer understood
//	samples                        Config.Window, at most 64
//	server time                    below 2^62 ns, 146 years
package netclock
