// Package graph is an actorrep.ReplicationDriver for many actors and many connections: its cost follows what changes (moves,
// spawns, owners), not actors times connections. When nothing moves it does nothing.
//
// A Graph is made of nodes. Each actor is in one of them, by its settings or by Graph.Route, and the node says which
// connections see it:
//
//	Grid      within the actor's cull distance. An actor is in every cell its circle touches, so that a
//	          connection looks at one cell; both are placed again only when they have moved by a part of a cell
//	Always    everybody
//	Owned     only its owner
//	Rooms     connections that have a room in common with it: teams, levels, instances, houses
//	All, Any  several nodes at once: All(rooms, grid) is who is in the room and near
//
// A Node of your own is a few lines; see the interface. Whatever its node says, an actor's owner sees it, who has it as view
// target sees it, and recordings see everything. Components go with their actor.
//
//	g := &graph.Graph{}
//	world := actorrep.NewServer(actorrep.Config{Relevancy: g.Relevancy})
//
// Moves are noticed when an actor's replicated values change. Where a Location isn't made of replicated fields, call Graph.Changed
// when it moves. So it is for a dormant actor, which nobody looks at: it costs nothing, lies in its
// cells, and who comes near or joins late finds it there.
//
// # Hysteresis
//
// What is within an actor's cull distance is always seen, and what is seen stays so up to 1.1 times that. Nothing is
// seen beyond about 1.4 times. In between it depends on where both were when they were last looked at, which is after a 16th
// of a cell: who walks up and down on a border changes nothing. Config.RelevantTimeout comes on top.
//
// # Frequency
//
// A node says not only whether but from how far a connection sees an actor: Near, Middle or Far. Graph.Middle and
// Graph.Far have changes of such actors go out in every n-th Step only, each actor in a Step of its own, so that the work is
// spread.
//
// # When to choose it
//
// With fewer than some hundred actors the plain list, which is the default, is as good. The list looks at every pair
// once a second, so what comes near may be seen late; the graph sees it in the Step in which it moved.
package graph
