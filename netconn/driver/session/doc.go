// Package session keeps players over the end of their connections: who crashed, or whose network changed, dials again and has its
// player back.
//
// # On a server
//
// A player is whatever the game has for one, P: a score, an avatar that stands about meanwhile. Players gets what a driver tells of
// connections, and tells of players:
//
//	connection                      player
//	joined, nobody known       -->  New
//	timed out, replaced, ...   -->  Away      kept for Config.Keep
//	joined, the same ID        -->  Rejoin    its player is back
//	left, was kicked           -->  Gone      as when Keep is over
//
//	players, err := session.NewPlayers(session.Config[*Player]{New: ..., Rejoin: ..., Away: ..., Gone: ...})
//	srv, err := driver.Listen(":7777", driver.Config{Link: driver.Netcode{TakeOver: true},
//		Joined: players.Joined, Closed: players.Closed})
//	each tick: players.Tick(srv.Since(now))
//
// Who a player is must be proven, or somebody else gets it: with the Netcode link the client id in the token is, and
// a ticket that Authorize has checked. Without Netcode.TakeOver that link refuses a client until its former connection has timed
// out; other links know nobody, so there the former connection goes when the new one has joined.
//
// # On a client
//
// A Redialer ticks a client's driver. When nothing is heard it dials again beside it, with a fresh token, and the game goes on with
// whichever answers. A connection to a server of actors needs a world of its own, so make one for each dial.
package session
