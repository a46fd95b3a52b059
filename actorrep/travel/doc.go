// Package travel takes a server and its players from level to level without a new connection (Unreal's seamless travel).
//
//	server                                      client
//	To("desert") destroys all actors but those that stay
//	  | Level: the map's name, its number   -->   | Client's load: the game loads it, which may take many ticks
//	  |   <-- Ready of that number                | Client.Ready
//	  | to each when it is ready: the actors spawned since
//	Arrived, when all are ready, or after Timeout
//
// No client sees a level's actors before it has loaded the level: they are held back until it is ready ([actorrep.Peer.Hold]). That is so for
// connections that were there before and for those that join later. So the game may spawn actors at once, or in Arrived to let all begin
// together. To may be called again meanwhile: then only the newest level counts, and Ready for an earlier one is ignored.
//
// Actors of the previous level may still be there when load is called; they disappear one by one.
//
// Make both parts before the first connection, because they register a class:
//
//	levels, err := travel.NewServer(world, travel.Config{Stays: ..., Arrived: ...})   // server
//	each tick: levels.Step(now) before world.Step(now)                               // it finds the connections of World.AddConn
//	err = levels.To("desert")
//
//	levels, err := travel.NewClient(world, load)                                     // client
//	each tick: levels.Step() after world.Step(now)
//	levels.Ready(m)                                                                  // when what load began is done
//
// When a client sees only what stays, it isn't ready: it forgot Client.Step or Ready, or is still loading. [Config].Late is told of it after
// Timeout, and [actorrep.World.Explain] of an actor says "waits for Peer.Release". A client that crashed counts until its connection has ended,
// so Arrived may wait for it.
//
// A server may name new levels as often as it likes. Client.Step calls load for four in a row, and then once a second at most, with the newest;
// it counts the others in Client.Delayed and tells the world's Config.Failed of the first with ErrHurry.
//
// A recording contains the Level, and all actors from the start: nothing is held back from it.
//
// When a server's world was restored from a checkpoint (actorrep/migrate) before the first Step, the server plays the level of that checkpoint. Its
// clients load it, and see the actors that don't stay when they are ready. Arrived isn't called for that level. The game must remember itself whether Arrived was called
// before: save Traveling with the checkpoint, and call To again if it was true.
package travel
