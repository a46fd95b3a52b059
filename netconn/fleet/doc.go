// Package fleet is many game servers as one: servers announce themselves in a key-value store, and a token service places players on them, so
// that no server is overfilled however many placers there are.
//
//	game server                     store (NATS)                     token service
//	  | Server                                                          | Placer
//	  | announcement, every Beat  --> server.ID  -- watch -->           | list of servers
//	  | seats: who is here        --> seats.ID   <-- compare-and-set -- | placements: seats for those on their way
//	  |                               party.NAME <-- compare-and-set -- | where a party is
//	  |                               player.ID  <-- compare-and-set -- | a player's last placement
//	  |                               mark.NAME  <-- every Beat ------- | and back by the watch: how old the list is
//	  |
//	  |  <------------ client, with a connect token: the server's addresses, others as backups, a Ticket
//	  | Server.Admit, Server.Left
//
// This package has no goroutine, clock or socket. Server, List and Placer are machines ([kv.Machine]): they take events of the store and the
// time, and return what the store shall do. Nothing waits for the store, so a tick of the game never does. Package natskv is the store on NATS
// JetStream, netconn/kv/kvsim a simulated one; package placing joins a Placer with a token service (netconn/netcode/tokenserver), package process
// runs a server below a process manager or Kubernetes.
//
// # A game server
//
//	server, err := fleet.NewServer(fleet.ServerConfig{Name: "eu-3", Info: fleet.Info{Addrs: addrs, Region: "eu", Build: "41", Schema: hash, Capacity: 64}})
//	store := bucket.Store(server)                                        // natskv
//	d, err := driver.Listen(":7777", driver.Config{
//		Link: driver.Netcode{Key: key, Addrs: addrs, Slots: 64, TakeOver: true, Admit: server.Admit, FirstSequence: server.FirstSequence()},
//		Closed: func(c *driver.Conn, r netconn.CloseResult) { server.Left(c.ClientID()) }, // with package session: in Gone
//	})
//	each tick: kv.Tick(server, store, d.Time(now))
//	server.Ready()   // when the level is loaded
//	server.Drain()   // to stop: nobody new comes; the game has its clients dial again (session.Redialer.Redial), and stops when server.Drained()
//
// # Seats
//
// The record seats.ID holds the server's capacity, how many seats are held by players who are there, and the placements: seats for players who
// are on their way. A placer adds a placement only by compare-and-set and only if the sum stays within the capacity. Only the server takes seats away:
// when a player has left, hasn't come for twice Timing.Life, or has its placement revoked. So at any time players and good tickets together are at most Capacity, whatever was
// lost, late or doubled:
//
//	placer: CAS seats.ID (+1)  -->  token with a Ticket  -->  client dials  -->  Admit: at once, also while the store is away
//	        outcome unknown: read back; the placement is in the record, or it isn't
//	        it isn't, and chosen elsewhere or given up: the record is written as it is, so that the write that was given up can't happen any more
//	        conflict: read, choose again
//
// A client without a placement, because the first server of its token was dead or full, waits at the next one for some milliseconds while that
// server writes a seat for it into its record; when there is none it is denied, and tries the one after that. All with one token. Its link does
// this: netcode tries the servers of a token in turn, each for the token's Timeout.
//
// # Who asks again and again
//
// A seat is kept for twice Life although nobody comes. So a want names its Player (package placing does so by itself), and a player has one seat on its way,
// however often it asks and whichever placers:
//
//	placer: read player.ID  -->  less than Life/2 old, and as wanted: the same placement again
//	                             else: book another one, or renew it if it is on the same server
//	        CAS player.ID   -->  revoke the one before
//	        conflict: another placer was first; read, and give the player its placement, or revoke that and keep this one
//
// How old a placement is follows from its revision, and those of the placer's own marks. A placer that crashes, or fails, between these steps may leave one more seat
// until it lapses. That costs two ops of the store for each want. A party of several isn't bounded by this: the game decides who may
// name a Party, and of how many Players.
//
// # How old a list is
//
// A server that isn't heard of for Timing.Expiry is gone. A List counts that by its own clock, and only as far as it knows that its watch works: every Beat it writes
// a mark, which the watch brings back. While the store is away nobody is removed, [List.Age] grows, and beyond max(Expiry/2, 2 Beats) nobody is
// placed. So players are placed on a server that died at most Expiry + max(Expiry/2, 2 Beats) earlier, plus what messages of the store are late. Then
// their tokens' other servers take them.
//
// Times are measured by each machine for itself. Clocks needn't agree; that they run up to 1 % too fast or slow is tested. Connect tokens alone need
// the time of day, as ever.
//
// # While the store is away
//
// Servers play on and let in who has a ticket. Nobody is placed (ErrUnavailable after PlacerConfig.Deadline), walk-ins are refused. When it is back all goes on; a
// server whose records have expired writes them anew, with who is there.
//
// A store that was lost and is made anew (kv.Event.Store) is filled again by the servers, with who is there and who may still come. A ticket whose server hadn't
// seen its placement before is one of a player without a seat then.
//
// # Builds
//
// A Want may name the client's build and schema. If servers are ready but none takes that build, the outcome is an [OtherBuild], so the client is told before it dials.
//
// # Bounds
//
//	announcement                  MaxInfo, 4 KiB; NewServer refuses a longer one
//	record of seats               45 KiB: 4096 placements at most; then the server counts as full
//	servers in a list             MaxServers, 10,000; further ones are left out, and counted in List.Bad
//	wants under way               PlacerConfig.MaxWants, 4096; then ErrBusy
//	players who wait for a seat   1024 at a server; then they are refused
//	work of a Placer's step       wants that choose * servers
//	ops of a server               1 a Beat, and 20 a second while its players come and go
//	ops of a placer               1 a Beat, and one at a time for each server, for all wants together; 2 for each want of a player, 3 of a party
//	keys player.ID                one for each player who asked within 4 Life + Expiry
//
// What is in the store is believed: who can write there can fill or empty servers. Values that can't be read are skipped and counted.
package fleet
