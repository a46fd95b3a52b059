// Package spectate shows a running game to spectators with a delay, so that nobody tells a player what the others can't know yet.
//
//	server                                                spectator
//	Relay records the world; what has been written        opens a channel, without becoming a player
//	is kept, for Delay and two checkpoints
//	  | what is older than Delay, from the last such
//	  | checkpoint on, in the bandwidth that is left  -->  Spectator plays it into a client's world
//
// Nothing younger than Delay leaves the server. A spectator sees what a recording has: everything but what only owners see, and no calls to one client. He sees it
// 1 to 3 s later than Delay, as recordings are written once a second.
package spectate
