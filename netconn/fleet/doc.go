// Package fleet manages many game servers: servers announce themselves in a key-value store, and a token service assigns players to them. No
// server gets more players than its capacity, however many services assign players at the same time.
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
// This package has no goroutine, clock or socket. Server, List and Placer are machines ([kv.Machine]): their Step takes events of the store and
// the time, and returns what to do in the store. Nothing waits for the store, so it never delays a tick of the game. Package natskv is a store on
// NATS JetStream, netconn/kv/kvsim a simulated one. Package placing joins a Placer with a token service (netconn/netcode/tokenserver), package
// process runs a server below a process manager or Kubernetes.
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
// The record seats.ID has the server's capacity, how many seats are taken by players on the server, and the placements: seats reserved for
// players who are on their way. A placer adds a placement by compare-and-set (CAS), and only while the sum is within the capacity. Only the server
// frees seats: when a player has left, hasn't come for twice Timing.Life, or its placement was revoked. So players and valid tickets together
// are never more than Capacity, even when messages of the store are lost, late or doubled:
//
//	placer: CAS seats.ID (+1)  -->  token with a Ticket  -->  client dials  -->  Admit: at once, also while the store is away
//	        outcome unknown: read the record again, to see whether it has the placement
//	        it hasn't, and the placer gives up: it writes the record unchanged, so that its late write would be a conflict
//	        conflict: read, choose again
//
// A client may come to a server without a placement there, because the first server of its token was dead or full. It waits some milliseconds
// while that server writes a seat for it into its record. When there is none, the client is denied and tries the next server of its token. The
// client needs no code for this: netcode tries the servers of a token in turn, each for the token's Timeout.
//
// # Repeated requests
//
// A seat stays reserved for twice Life when nobody comes. So that a player can't reserve many, a Want names its Player (package placing sets it). A
// player then has at most one seat reserved, however often it asks, and whichever placers it asks:
//
//	placer: read player.ID  -->  less than Life/2 old, and as wanted: the same placement again
//	                             else: book another one, or renew it if it is on the same server
//	        CAS player.ID   -->  revoke the one before
//	        conflict: another placer was first; read, and give the player its placement, or revoke that and keep this one
//
// The age of a placement is computed from its revision in the store, compared with the revisions of the placer's own marks. A placer that
// crashes or fails between these steps may leave one more seat reserved until it expires. All this costs two operations of the store for each Want.
// A player who is connected has its seat there as well, until it leaves: on each server that it is connected to. While it goes from one server to another these are two. One who stays on several, by their tokens or by
// the backups in one, has one seat on each; the game ends the others if it minds.
// A Want of several players, a Party, isn't limited in this way: the game decides who may name a Party, and for how many players.
//
// # How old a list is
//
// A server from which no announcement has come for Timing.Expiry is gone. A List measures this with its own clock, and only while its watch
// works: every Beat it writes a mark, which the watch must return. While the store is away no server is removed, [List.Age] grows, and above
// max(Expiry/2, 2 Beats) no player is placed. So a player may be placed on a server that died at most Expiry + max(Expiry/2, 2 Beats) earlier, plus the
// delay of the store's messages. The player then gets in at another server of its token.
//
// Each machine measures times with its own clock. The clocks may differ; that they run up to 1 % too fast or too slow is tested. Only connect tokens
// need the time of day.
//
// # While the store is away
//
// Games go on, and servers let in clients with a ticket. Nobody is placed (ErrUnavailable after PlacerConfig.Deadline), and clients without a
// ticket are refused. When the store is back, everything works again; a server whose records have expired writes them again, with its players.
//
// When the store was lost and made anew (kv.Event.Store), the servers write their records again, with their players and the placements that they
// know. A ticket whose placement the server hadn't read before the loss counts as no ticket.
//
// # Builds
//
// A Want may name the client's build and schema. When servers are ready but none accepts that build, the error is an
// [OtherBuild], so the client learns of it before it dials.
//
// # Bounds
//
//	announcement                  MaxInfo, 4 KiB; NewServer refuses a longer one
//	record of seats               45 KiB: 4096 placements at most; then the server counts as full
//	servers in a list             MaxServers, 10,000; further ones are left out, and counted in List.Bad
//	Wants in progress             PlacerConfig.MaxWants, 4096; then ErrBusy
//	players who wait for a seat   1024 at a server; then they are refused
//	work of a Placer's Step       the number of Wants that choose a server, times the number of servers
//	store operations of a server  1 a Beat, and 20 a second while its players come and go; 80 a second while the store fails at once
//	store operations of a placer  1 a Beat; 2 for each Want of a player, 3 for one of a party; one at a time for each server's record
//	keys player.ID                one for each player who asked within 4 Life + Expiry
//
// The contents of the store are trusted: whoever can write there can fill or empty servers. Values that can't be read are skipped and counted.
package fleet
