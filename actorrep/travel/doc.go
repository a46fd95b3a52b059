// Package travel takes a server and its players from level to level without a new connection (Unreal's seamless travel).
//
//	server                                      client
//	To("desert") destroys all actors but those that stay
//	  | Level: the map's name, its number   -->   | Client's load: the game loads it, which may take many ticks
//	  |   <-- Ready of that number                | Client.Ready
//	  | to each when it is ready: the actors spawned since
//	Arrived, when all are ready, or after Timeout
//
// No client sees a level's actors before it has loaded the level: they are held back until it is ready ([actorrep.Peer.Hold]).
// This applies to connections that join later, too. So the game may spawn actors at once, or in Arrived to let all begin
// together. To may be called again before Arrived: then only the newest level counts, and Ready for an earlier one is ignored.
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
// A client that sees only what stays isn't ready: it is still loading, or its game doesn't call Client.Step or Ready. After Timeout
// [Config].Late is called for it. [actorrep.World.Explain] of an actor says "waits for Peer.Release". A client that crashed counts
// until its connection has ended, so Arrived may wait for it.
//
// A client needn't trust its server's pace. Client.Step calls load for four levels in a row, and then once a second at most, with the
// newest level. It counts the levels that had to wait in Client.Delayed, and calls the world's Config.Failed with ErrHurry for the first.
//
// A recording contains the Level, and all actors from the start: nothing is held back from it.
//
// When a server's world was restored from a checkpoint (actorrep/migrate) before the first Step, the server plays the level of that checkpoint. Its
// clients load it, and see the actors that don't stay when they are ready. Arrived isn't called for that level. When it may not have been
// called before the checkpoint, the game must find out: save Traveling with the checkpoint, and call To again if it was true.
package travel
