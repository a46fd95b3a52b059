// Package arena is a game of ships without its graphics: what is replicated, the rules, server, client, bots and the
// figures of the network. The window is the package above; a server without one is package dedicated.
//
// # Who does what
//
//	ship.go     what of a ship is predicted, and how an input moves it, the same at both ends
//	actors.go   what is replicated
//	server.go   connections, players and the tick;  rules.go: bullets, hits;  bot.go: players without one
//	client.go   the own ship, predicted;  others.go: the others, interpolated;  graph.go: the network's figures
//	screen.go   where things are in the window
//
// # The caller's loop
//
//	server                          client, each frame
//	  s.Tick(now)  30 times a second    c.Frame(now, input)
//	                                    draw c.Ships(), c.Bullets(), c.Graph
package arena
