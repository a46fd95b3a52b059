// Package graph is an actorrep.Relevancy for many actors and many connections. Its cost depends on what changes (moves,
// spawns, owners), not on actors times connections. When nothing moves it does nothing.
//
// A Graph is made of nodes. Each actor is in one node, chosen by its settings or by Graph.Route. The node says which connections see the
// actor:
//
//	Grid      those within the actor's cull distance. An actor is in every cell that its circle touches, so a connection
//	          looks at one cell only. Both are placed again only after moving by a part of a cell
//	Always    all
//	Owned     only its owner
//	Rooms     those that have a room in common with it: teams, levels, instances, houses
//	All, Any  combinations of nodes: All(rooms, grid) is those that are in the room and near
//
// A Node of your own takes a few lines; see the interface. Whatever the node says, an actor is seen by its owner, by connections whose view
// target it is, and by recordings. Components follow their actor.
//
//	g := &graph.Graph{}
//	world := actorrep.NewServer(actorrep.Config{Relevancy: g.Relevancy})
//
// The graph notices a move when an actor's replicated values change. When an actor's Location doesn't depend on replicated fields, or the
// actor is dormant, call Graph.Changed when it moves. A dormant actor costs nothing and stays in its cells; connections that come near or join
// late find it there.
//
// # Hysteresis
//
// An actor is always seen within its cull distance, and once seen it stays so up to 1.1 times that. Beyond about 1.4 times it is never seen.
// In between it depends on where both were when they were last placed, which happens after each move by a 16th of a cell. So walking to and fro at
// a border changes nothing. Config.RelevantTimeout applies in addition.
//
// # Many at once
//
// A connection that has moved far enough is placed in another cell and checks all actors of that cell. When many connections are due in one
// Step, for example because a round begins, the Step makes at most 16,384 checks, or a quarter of those that are due if that is more, but
// always those of one connection. The connections that moved farthest and waited longest go first. The others see what they saw at their
// former place until it is their turn. Under such load connections are placed before they have to be, from three quarters of the distance
// on, so that few have to wait.
//
// # Frequency
//
// A node also says from how far a connection sees an actor: Near, Middle or Far. With Graph.Middle and Graph.Far, changes of such actors are
// sent only in every n-th Step. The actors' Steps differ, so that the work is spread.
//
// # When to choose it
//
// With up to a few hundred actors the default list is as good. With many actors and connections the list checks each pair once a second, so an
// actor that comes near may appear late; with a graph it appears in the Step in which it moved.
package graph
