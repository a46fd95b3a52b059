// Package travel takes a server and its players from level to level without a new connection (Unreal's seamless travel).
//
//	server                                      client
//	To("desert"): actors go, but for who stays
//	  | Level: the map's name, its number   -->   | Client's Load: the game loads it, which may take many ticks
//	  |   <-- Ready of that number                | Client.Ready
//	  | to each as it is ready: what was spawned since
//	Arrived, when all are ready, or after Timeout
//
// Nobody sees an actor of a level before having loaded it: a connection gets what doesn't stay only when it is ready
// ([actorrep.Peer.Hold]), whether it was there before or joins later. So the game may spawn at once, or in Arrived, when it wants all to begin
// together. Who travels again meanwhile begins anew with the newest level, and the ready of one before counts for nothing.
//
// Actors of the level before may still be there when Load is called, and go one by one.
//
// Both ends make their part before the first connection, as it registers a class:
//
//	levels, err := travel.NewServer(world, travel.Config{Stays: ..., Arrived: ...})   // server
//	each tick: levels.Step(now) before world.Step(now)                               // it takes World.AddConn's connections along
//	err = levels.To("desert")
//
//	levels, err := travel.NewClient(world, load)                                     // client
//	each tick: levels.Step() after world.Step(now)
//	levels.Ready(m)                                                                  // when what load began is done
//
// A recording has the Level, and all actors from the first on.
package travel
