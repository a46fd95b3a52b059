// Package spectate shows a running game to spectators with a delay, so that what they tell players comes too late to help.
//
//	server                                                spectator
//	Relay records the world, and keeps the recording      opens a channel, without becoming a player
//	of the last Delay, and back to two checkpoints before it
//	  | the part older than Delay, from the last
//	  | checkpoint in it on, with spare bandwidth     -->  Spectator plays it in a client's world
//
// Nothing younger than Delay leaves the server. Spectators see what a recording contains: everything except fields for owners and calls to
// one client. They see it 1 to 3 s later than Delay, because recordings are written once a second.
package spectate
