// Package mesh has several servers play one world: it takes players from one server to another while they play, and actors over the borders of zones (below). The client connects to the next server while the old one still plays the player. The player's state goes
// from server to server. Messages that are under way arrive once, in order, whichever server plays the player by then.
//
//	client                     the server that it leaves          the next server
//	                             Travel
//	                               expect                    -->   Game.Ticket
//	                               <-- come: the ticket
//	  <-- go there, the ticket
//	  dials the next server, says by which travel it comes   -->
//	                               <-- come: it is here
//	                             Game.Save: the player stands still
//	                               give: state, messages     -->
//	                               <-- come: got it
//	                             Game.Moved
//	                               done                      -->   Game.Play: it plays here
//	                               <-- have
//	  <-- the player plays here                              <--
//	  Moved; closes the former connection
//
// A [Server] runs beside each game server, a [Client] with each player. They do no I/O: ToServer, ToClient and Send carry their packets, each of which may be lost, late or doubled. Between servers
// it is whatever they have, such as NATS, or connections of this module; with clients it is a channel of the connection ([ChannelType]).
//
// # Who plays a player
//
// At any time at most one server plays a player. The old one plays until it has heard that the client is at the next one, and then gives
// the player away: it saves the state and doesn't play until it has an answer. When the next server has the state, the old one gives the
// player up (Game.Moved) and says so (done, which is repeated until it is answered). The next one plays when it hears that. When there is no
// answer within FreezeFor, or the client doesn't get to the next server within TravelFor, or that one refuses or is gone, the player stays
// (Game.Stays). Meanwhile the player stands still on the servers: for one and a half round trips between them, and a tick of each. Its
// client doesn't show that, because it predicts.
//
// A player who was given to a server that is gone, or was being given by one, is lost: Server.Gone counts it in Lost, Client.Lost reports it, and the player logs in again, with what the game keeps
// elsewhere. When the path between the servers breaks in the moment between "got it" and "done", the player plays nowhere until they have a path again.
//
// # What the client sees
//
// It has a World for each connection, as with package session. Its next World fills before the player moves, and is interpolated already when Moved says to draw it. Actors that are on both servers have the same
// id in both Worlds (actorrep.Config.IDs, World.SpawnAs), so what the game keeps for an actor goes on. The player's own actor goes with predict.Class.Depart in Game.Save, Arrive in Game.Play, Stay in
// Game.Stays, and Follow on the client. In Game.Moved the game leaves the actor alone until the client's connection has ended. A client draws the next World when it is Client.Server's and its own actor is
// predicted there.
//
// ClientConfig.Ready holds the travel back until the next World is shown as well as the present one. A second and a half after all actors are there, both are drawn at the same time; after 0.3 s they
// differ by 50 ms, which shows as a step back. At 50 ms each way and 2 % loss, between clients and servers and between servers, what is drawn stands still for at most 17 ms in 99 of 100 travels (go test ./actorrep/mesh
// -run City -city 10 -v; 500 travels in virtual time, frames of 16.7 ms). From the tick before the player is given until half a second later no input is left out or simulated twice. In the whole run 5
// of 101247 inputs came too late for their tick, so that the input before was simulated twice: their packets were lost long before the player was given. In the same run without travels there
// are 39. Without loss there are none (TestDance).
//
// # Trust
//
// Packets between servers are sealed with ServerConfig.Key (XChaCha20-Poly1305, over both servers' IDs): who carries them can't read them,
// change them, pass them to another server, or send them in another server's name. A packet that comes again does nothing. A client never
// has the state. It says only that it is there and which messages it has, and sends its own messages. The connection must prove who the
// client is: the best ticket is a connect token for one server and one player. A client goes only where the server that plays it sends it.
// The servers of a mesh trust each other.
//
// # Messages
//
// Client.Send and Server.Send are for calls that must not be lost or doubled by a travel. They are numbered from the client's login on, and repeated until they are acknowledged; what was
// not acknowledged goes with the player. A client that has begun anew, with another Session, begins with none.
//
// Reliable calls of the player's own actor (actorrep) go along as well, both ways: predict.Class.Depart, or World.Depart for an actor that isn't predicted, puts those under way into the
// state, Arrive goes on with them, and World.Follow lets the client's World of the next server know what the former one has had. Each runs once, in order. Follow the World of Client.Server
// whenever Client.Next names a server, also one with which there is a connection still. Calls of other clients to the actor don't go along, nor do unreliable ones.
//
// # Bounds
//
//	a player's state                  64 KiB; above, the player stays, with ErrTooLong
//	a ticket                          4 KiB; above, the player is refused
//	a message                         1 KiB (ErrTooLong)
//	messages that wait for an ack     256 in one direction, and 32 KiB (ErrFull)
//	a packet between servers          98 KiB: its carrier splits it if it must
//	a packet of a client              2.2 KiB; to a client 6.4 KiB
//	players expected at a server      ServerConfig.MaxArrivals; further ones are refused
//
// # Wire
//
// Numbers are uvarints, but for nonces and sessions, which have 8 bytes, low ones first. Texts, tickets and states are preceded by their length. A packet between servers is sealed:
//
//	24    nonce
//	...   the packet
//	16    tag, over the packet and: length of the sender's ID, that ID, the receiver's ID
//
// The packet is
//
//	1          kind
//	number     player
//	number     attempt: number of the travel, by the server that the player leaves: above those of the player's travels before, at whichever servers
//	8          nonce of the arrival, by the next server; 0 in the first expect
//	expect 1   8 session
//	come 2     1 flags: 1 the client is here, 2 got it | ticket
//	no 3
//	give 4     number epoch | 8 session | number next | messages | state
//	done 5
//	have 6
//	cancel 7
//
// epoch is how many servers have played the player, session is random and tells the client's logins apart, next is the number of the message that is expected next, and messages are
//
//	number     of the first one
//	for each   number length+1 | the message
//	0
//
// Of a client, and to one:
//
//	8 session | number way | number next | messages
//
//	1 flags: 1 plays here, 2 is expected, 4 go, 8 the travel that it knows of goes on | number epoch | number attempt | with go: server, ticket | with plays: 8 session | number next | messages
//
// way is twice the attempt by which the client comes, 0 for none yet; to the server that plays it, twice the attempt of the travel that it knows of and 1.
//
// # Zones: one world, many authorities
//
// A [Zone] runs beside each server. A [Table] divides the plane among the servers, in a grid whose cells may be divided further, and each actor has one authority: the server that may change it. Every server mirrors what is
// its neighbours' within a margin beyond its border, so a client, which is connected with one server, sees one world. Zone.Table tells who has what now. An actor is a struct that embeds [Body] instead of actorrep.Base. It has
// the same id at all servers (actorrep.Config.IDs), so a reference is right wherever its actor is.
//
//	   the plane                            server1                                server2
//	+---------+---------+
//	|         :    |    |     mirror      <-- ordinary replication            of its own actors within
//	| server1 : margin  |       copies        a client's World of server2     Margin of server1's zone
//	|         : of 1    |       values        a client's World of server1 -->   mirror
//	+---------+---------+
//	                          an actor crosses the border by Hysteresis:
//	                          Game.Give: it is server2's
//	                            hides it from all neighbours
//	                            give: epoch+1, state              -->     Game.Take: it is server2's
//	                                                                        shows it to its neighbours
//	                            its mirror goes on with           <--       values of epoch+1
//
// A server is a client of its neighbour's border. It dials the neighbour and hands the World of that connection to Zone.Mirror; the neighbour hands the connection to Zone.Accept, which sends it the
// neighbour's own actors that are within Margin of this server's zone, and nothing that the neighbour mirrors. What arrives is copied into actors of the server's own World, under the same ids, and goes from there
// to its clients like everything else. A mirror goes when its authority destroys it, when it has left the margin, or Forget after the last server has stopped showing it, so that nothing blinks while an authority changes or a connection is made anew.
//
// The game changes only what Zone.Owns says is its own. What two actors do to each other is simulated by the authority of the one with the
// lower id (Zone.Simulates). It tells the other one's authority by Zone.Call, which reaches an actor once, wherever it is. When an actor
// moves on while a call is under way, the call is forwarded; when the actor is no more, it comes back (Game.Undelivered). Calls of one
// server come in order unless the authority changes while they are under way.
//
// # Who may change an actor
//
// At any time at most one server may. The epoch counts an actor's authorities. The server that gives an actor away doesn't change it after
// it has asked the game for the state. The server that is given it may change it once it has that state. In between nobody changes it, for
// as long as the packet takes and until the tick that receives it. Messages between two servers come once and in order (below), so there is
// no third state, and no time-out after which somebody takes an actor back: a server that can't take it says so, and then it goes back with
// a further epoch. Nothing is given to a server that leaves messages unacknowledged for five times Resend.
//
// Values are of an epoch as well: Body.Epoch is replicated with the actor. An authority closes its neighbours' views before it gives an actor away, and opens them when it has taken one, with all
// values. So what is received in an opening, and from then on, is of the epoch that it says, and lower epochs are refused and counted (Counters.Stale). No value goes back in time in the World of a connection. A client that
// travels sees the next server's World, in which what that one mirrors is older by two ticks at most without loss (the run below); interpolation hides it. What comes into
// the margin just then isn't there yet, or stands where it left the margin: a round trip later it is right.
//
// Without loss an actor stands still for 55 ms at 99 of 100 crossings, with ticks of 50 ms and 5 ms between the servers, and for 95 ms when 2 % of all packets between the servers are lost
// (go test ./actorrep/mesh -run ZonesQuick -seeds 40 -v; 9838 and 9652 changes of authority in virtual time).
//
// # Players in zones
//
// A player's actor goes with its player: Game.Give begins Server.Travel and returns false. Game.Save calls Zone.Release and puts the epoch
// that it returns into the state. Game.Play takes the actor that is mirrored already (World.Find), or spawns it (SpawnAs), and calls
// Zone.Own with that epoch; so does Game.Stays. An actor that a player has left here by predict.Class.Depart, and that it comes back to
// before its connection has ended, is destroyed first. Until the travel is over, the server that plays the player keeps the actor, even
// when it is beyond the border.
//
// Each player travels by itself. A party that crosses a border together is at two servers for a while, and its members see each other as mirrors meanwhile. Whoever can't reach the next server plays on at this one, and Give
// is asked again in each Step. Within a world there is no travel of several players, all or none: the place of an actor decides whose it is. A ship and its passengers cross one by one, so let a passenger's place follow from that of
// the ship, by a reference (actorrep.Ref), which is right at both servers. Players who go to another match, together or not at all, are netconn/fleet's: Want.Party.
//
// # Split and merge
//
// Zone.SetTable takes a table with a higher Epoch while all run: what is in another server's zone then, goes there, as the streams have
// room. A Keeper (below) makes such tables by itself: with KeeperConfig.Weight it divides a crowded server's zones among the others while all run, and with KeeperConfig.Split it splits a crowded zone into quarters, which go to different servers, and merges them when
// they are empty or calm. Servers may have different tables for a while: a server that was given an actor by a newer table than its own keeps the actor until
// it has that table. For Linger after a new table a server mirrors what was its own as well, with the margin, so that its players who haven't travelled yet see no hole where their zone was, however many tables come meanwhile.
//
// # Trust between zones
//
// A server of the mesh is trusted with its own actors, not with ours. Whatever it sends, by replication or by messages, an actor of this
// server stays its own and as it is: nothing but this server's Give or Release ends its authority. It is trusted with those of third
// servers: it can claim them by a high epoch. Zone packets are sealed as the others are, and none is taken for one of those. Zone.Accept's
// connection must prove who has dialed it, for instance by a connect token.
//
// A server that is gone (Zone.Gone) takes its actors with it, unless there is a Keeper (below).
//
// # What a zone can't have
//
// Mirrors have what is replicated to everybody: no fields with an owner's condition, no groups of actors, no components: Give's state may have these, and Take
// spawns them again. A component that comes from a neighbour, and an actor that ZoneGame.Make doesn't make, is told once for each class, by actorrep.Config.Failed of the World. Fast arrays (package fastarray) are mirrored with their ids. A class with one of another kind, which has no NetCopy, has no zone: Own returns ErrConfig. An actor that is torn off isn't at the neighbours. A multicast comes to the neighbour's
// client World, where its function calls it again for the mirror. Give each start of a server a share of ids (actorrep.Config.IDs) of its
// own: actors of an earlier start may live on at other servers, and with the same share their ids would be given again. Without a share NewZone returns ErrConfig; two servers with the same one are told, by Config.Failed, when they meet.
//
//	an actor's state                      16 KiB; above, it stays, and Counters.TooLong counts it
//	a call                                1 KiB (ErrTooLong)
//	messages that wait for a server       4096, and 512 KiB; half of it for calls (ErrFull; one that is forwarded comes back)
//	actors that are given                 256 in a Step, and to each server no more at a time than goes into a packet; the others stay this server's until the next Steps
//	calls that wait for a travelling actor  1024; then they come back
//	actors that a zone knows              ZoneConfig.MaxActors; above, others' are refused
//	what was whose before, and lingers    262144 parts of the plane that have changed hands; above, the oldest are forgotten
//	tables of another grid that linger    4; above, the oldest is forgotten
//	a table                               65536 cells, 16384 splits, 8 of them in one another; Margin and Hysteresis together four of its smallest sides
//	a call's way                          8 servers; then it comes back, if its caller's server is in the table or has sent something
//	a packet between zones                64 KiB: its carrier splits it if it must
//
// # Wire of zones
//
// A packet is sealed as above; before the sender's ID its seal covers a byte of 255. Every packet says how many messages have come, and has messages again until they are acknowledged:
//
//	number     of the message that is expected next
//	number     of the first one here
//	for each   number length+1 | the message
//	0
//	number     if there is one of the two: the round in which the sender's Keeper asks to go on without the store; 0: it doesn't
//	number     and the receiver's last round that it allows; 0: none
//
// A message is
//
//	1          kind
//	number     actor's id
//	give 1     number epoch | number epoch of the table | class | state
//	no 2       the same: it isn't taken
//	call 3     1 how many servers have forwarded it | the caller's server | the call
//	back 4     the call
//	ended 5    number epoch: its authority has destroyed it
//	deal 7     1 how many servers have forwarded it | number of the other actor, whose deal it is | number of the deal | number nonce of the question, or 0 | the sender's server | the deal
//	wanted 8   the same, to the other actor's server, without the deal: say it again with this nonce
//	taken 9    the same: the store has that it was taken
//	settled 10 the same, back: the store has that as well
//	asks 6     of actor 0: the sender's Keeper won't go on without the store unless the receiver's allows it
//
// # Take-over
//
// A [Keeper] beside each Zone holds the server's zones by lease and writes its actors to a store (netconn/kv), such as NATS JetStream (netconn/fleet/natskv). When a server is there no more, another one takes its zones and
// its actors. No tick waits for the store: requests go out of Keeper.Step, and answers go into a later one. An answer that doesn't come in a quarter of Lease is unknown, and what happened is read back.
//
//	server1                        the store                            server2
//	   renews its lease       -->  server.server1: beat 7          -->    hears of it
//	   writes its actors      -->  actor.10: epoch 4, server1, state
//	   is cut off, or crashes
//	   stops at 98 % of Lease                                             nothing for Lease: server1 is over
//	                               server.server1: over, server2   <--      (compare and set)
//	                               zone.north: server2, epoch 2    <--      (compare and set)
//	                                                                      all others have heard it, and have written what came from server1
//	                               actor.10: epoch 7, server2      <--      (compare and set)
//	                                                                      Game.Take: it is server2's, with its id, in epoch 7
//
// # Leases
//
// A server writes its lease four times in each Lease. The lease ends 98 % of Lease after the server sent the last write that the store has, by the server's own monotonic clock. Then the server is over:
// Keeper.Over reports true, and the Zone owns nothing and sends nothing more. The other servers mark a lease as over when they have heard nothing of its server for Lease, by their own clocks, and the store has no newer write. So
// a server has stopped before another takes over, if no clock is more than 1 % wrong. The server with the fewest zones takes over (with KeeperConfig.Weight, the one that weighs least); of several, the one with the lowest ID.
// Each next server in this order waits another eighth of Lease, and takes over only when those before it haven't. A server that is over begins anew with another ID, and with a share of ids of its own
// (actorrep.Config.IDs): a world takes 1024 starts of servers at most, as long as actors of the first ones live. A server whose first write has had no answer for a Lease, and whose lease isn't in the
// store then, is over as well: others may have ended it. A server that begins with an ID whose lease is in the store already is over at once: it doesn't have the actors of the start that wrote that lease.
//
// Who takes over has all zones of the server that is over. When no zone has changed hands for KeeperConfig.Spread, the server with the most zones hands one to the server with the fewest, if that has at least two
// fewer. So a new server, or one that begins anew, gets its share, one zone in each Spread. With KeeperConfig.Weight zones go by what the actors in them weigh: when the lightest server weighs less than three fifths of
// another one, that one hands it up to 16 zones, first those that border on its own, until both weigh the same. A weight is the mean over four Spreads. A zone that weighs more than two thirds of the difference stays, so
// hardly any zone changes hands while a crowd stays in one place. With KeeperConfig.Split (next) such a zone is split. A server that leaves is handed none. Keeper.Hand hands a zone when the game says so. The holder of a zone
// is only the server that its actors will go to: they go one by one, as over a border, and each keeps its authority until then.
//
// # Zones that are split
//
//	+-------+-------+         +---+---+-------+           +---+---+-------+
//	|       |       |         | a | a |       |           | a | b |       |          a's zone is split: its quarters are a's, too
//	|   a   |   b   |   -->   +---+---+   b   |    -->    +---+---+   b   |          then quarters go to others, as zones do
//	|       |       |         | a | a |       |           | c | a |       |          when all four are calm the first one's holder has the zone whole
//	+-------+-------+         +---+---+-------+           +---+---+-------+
//
// A server that is still much heavier than the lightest one when it has handed all that it may splits the heaviest of its zones, or parts of zones, that weighs more than KeeperConfig.Split. Its quarters are zones like others: they are weighed, handed,
// taken over and split again, when zones have stayed where they are for Spread. A zone has one key in the store however it is split, and each split, merge and change of hands is one compare-and-set of it: a crash leaves the zone as it was before, or as it is
// after. Each of them raises the zone's epoch, so the servers' tables agree. What is split belongs to the server that had it: no actor moves because of it. What is merged goes where the table says, one by one, as always.
//
// A server says of each part of its own whether it is calm: that it has weighed less than a 16th of Split, in the mean of four Spreads, and not more than twice that since. That changes no epoch and no table. When four quarters are calm, the holder of the first one
// merges them. So what was merged weighs half of Split at most, and isn't split again as an actor comes by.
//
// The program examples/mesh shows it: players gather in a zone, which is split among servers, and merged when they have left, while servers are killed.
//
//	sides                       of a quarter: at least a quarter of Margin and Hysteresis together, four times Hysteresis, and a 256th of the cell. A server with a larger Margin takes what another one has split
//	parts of a zone             128; above, it isn't split further
//	splits of all zones         8192; above, none is split. A Table may have 16384
//	a zone of several cells     isn't split
//	a server of a release       without splits takes a zone that is split for damaged, and takes it whole, once: no other server splits anything while it is there, which World's Config.Failed is told
//
// A server that is paused between Keeper.Step and its sending in the same tick sends after its lease has ended. Epochs refuse what it sends: other servers drop packets of a server that is over (Zone.Gone) and values of an older epoch, and
// the store refuses writes by their revision. The one exception is the first record of an actor that it has just made, which stays in the store, unused. Only clients that are still connected to that server see its values, in the World
// of that connection.
//
// A server that can't reach the store for Lease is over, even when no server can, unless KeeperConfig.Away is set. With a longer Lease servers survive a longer loss of the store, and a take-over takes as much longer.
// A store that was lost and made anew ends all leases.
//
// # Without the store
//
// With KeeperConfig.Away all servers play on for that long while none of them can reach the store. A server alone can't tell that from being cut off, so it needs the others' permission. A server that has had no
// confirmation for 3/8 of Lease asks every server whose lease isn't over. A server allows it when it lacks the store as well, or did in the last four Leases. From then on it doesn't
// end the asker's lease for the asker's Away, by its own clock, unless the asker has written to the store that it no longer relies on this permission. When all have allowed it, the lease of the
// asker goes on until 98 % of Away after its last write. So a lease still ends by one server's write to the store, and each server that could write it has said that it won't. A server that
// began meanwhile isn't asked, as the asker hasn't heard of it: it waits for Away, instead of Lease, since it has heard of the asker.
//
// It follows:
//
//	the store is away from all            all play on, for 98 % of Away at most; then all are over
//	a server is cut off from the store    it is over after Lease, whether it reaches the others or not, and another takes over: they have the store and don't allow it
//	a server is cut off from the others   nothing, while it has the store
//	both at once                          all are over after Lease: without the answer of the server that is cut off, nobody knows whether it takes over
//	the same, when all were allowed       all play on
//	a server crashes meanwhile            the others play on if all were allowed, about a Lease after the store went away; else all are over. Its zones wait for the end of its Away
//	all servers crash                     those that begin anew take over after Away, not after Lease
//
// Meanwhile (Keeper.Away) an actor that has come from another server stays where it is, zones don't change hands, no checkpoint is written, and who called Keep hears when the store is back: up to 1024 wait, then Keep
// returns ErrFull. Deal returns ErrAway. What was not kept is lost if the server crashes before the store is back.
//
// # What is kept
//
// Each actor of a Zone with a Keeper has a record in the store: its state as KeeperConfig.Save returns it, which Game.Take is given at the
// next server. It is written at once when the actor is new here, then every Checkpoint if it has changed, and at once for Keeper.Keep: what
// was changed before the call of Keep is never lost once the store has it, which done tells. Until then tell nobody that it is done. What
// is changed in one actor is kept together: a record is the whole state. A change of two actors is a deal (below).
//
// A field with the tag mesh:"durable" needs no Keep: the Keeper looks at it in each Step, and when it has changed writes the actor as Keep does.
//
//	type Chest struct {
//		mesh.Body
//		X, Y  float64
//		Gold  uint32         `net:"" mesh:"durable"`
//		Items map[string]int `mesh:"durable"`
//	}
//
// So such a change is in the store one answer of it later, and a crash before that loses it: call Keep for what somebody must be told only when it can't be lost. It may be numbers, texts, bools, Vars, and structs, arrays, slices and
// maps of these; NewKeeper refuses others. What happens once, at another actor, is a deal.
//
// An actor is given to another server only when that one has a lease, and the actor's record is of its present epoch: one that has just come stays until then, and longer when the store is away. So there is one server at most that has an actor and no record of it, and each claim's epoch is higher
// than all that anybody has seen. A player begins to travel from Game.Give only, for the same reason.
//
// Who takes over waits until every server whose lease goes on has heard of the end and has written all actors that had come to it before.
// Their leases say so. An actor that was under way to the server that is over goes back to the server that gave it, as it was given; a player's, as the record has it. What a client sees may
// go back by one checkpoint: the values are those of the record, under a higher epoch. (Under loss a client may hear of an epoch a little before its values, or after them.) Their clients come with new connections, new Clients
// and new Sessions. Game.Take calls Server.Restored for a player's actor, and ends the connection that its client may have with this server:
// the client's messages and numbers are those of the server that is over. Calls and messages that waited at the server that is over are
// lost.
//
// With a lease of 2 s actors are played on 2.11 s after a crash at most, and players, whose connections have a time-out of 2 s, have their actor again 2.92 s after it at most (go test ./actorrep/mesh -run TakeOver -kept 10 -v; 143 actors
// and 53 players in virtual time, one of four servers crashes, no loss). After Keeper.Leave, by which a server stops of itself, actors are played on as they were, 0.61 s later at half of them and 1.35 s at most (-run Leave -seeds 40; 434 actors).
//
// # Deals
//
// [Keeper.Deal] takes something from one actor to another, at whichever servers both are: gold, an item, half of a trade. It is never lost and never doubled. Actors that deal have a [Book], which is part of their state.
//
//	actor 10, at server1                     the store                       actor 12, at server2
//	   the game takes 5 gold out of it
//	   Deal: its Book has deal 3
//	                                    -->  actor.10: state with both
//	   who has actor 12?                <--  actor.12: server2
//	   deal 3                                                          -->
//	                                                                   <--   wanted, with a nonce
//	   deal 3 with the nonce: 5 gold                                   -->   DealGame.Deal: 5 gold more; its Book has deal 3 of 10
//	                                         actor.12: state with both <--
//	   its Book hasn't deal 3 any more                                 <--   taken
//	                                    -->  actor.10: state without it
//	   settled                                                         -->   its Book hasn't it either
//
// Each line is repeated every 500 ms until the next one has happened, by whichever server has the actor by then; who has had a deal answers that it was taken. What comes late, by another way, when the deal is settled, has no nonce that is waited for. The other half of a trade is a Deal of the second actor's, within
// DealGame.Deal: what it gets and what it gives for that are kept together. A deal that it doesn't want it deals back. A deal for an actor that the store doesn't have is returned: the actor was
// destroyed, or is new and has no record yet (Keep it first). An actor may be destroyed when its Book is idle. Servers trust each other's word about deals.
//
// Deals go by the servers' own road (ZoneConfig.ToServer) and by the store. No client and no mirror has a part in them, so the two actors may be anywhere. This is what a game sees: Deal returns at once. Until the other actor has it, the
// deal is in the Book of the first one, and neither has the goods: show that as under way. DealGame.Deal is called when the store has the first one's side and the other's server has asked for the deal, at the earliest after a write and a look
// of the store and three packets. While one of the servers is cut off, or is taken over, it takes as long as that. Returned gives the goods back. No call tells that a deal was taken: where its player must know, have the other actor deal a
// receipt back.
//
// What is of the whole world, such as a market or a party, is an actor with a Book: a player's actor at any server deals with it by its id, and it deals back. A line of chat that must come once is a deal that
// carries no goods; deals may overtake each other, so number the lines. The example of Keeper.Deal is a party and its chat. A party that goes to another match, together or not at all, is netconn/fleet's: Want.Party. Each deal costs a few writes of the store: send what may be lost by other ways.
//
//	a deal                                MaxDeal (ErrTooLong)
//	deals of an actor that aren't settled  MaxDeals (ErrFull)
//	deals that an actor has had           64 until they are settled; above, further ones wait at their senders
//	deals that it asks for                64, for 2 s each; above, the same
//	a Book in a state                     MaxBook
//	looks for the other's server          32 under way
//
//	a record                              MaxActorState and 1 KiB; above, it isn't written: Counters.TooLong, and ErrTooLong to who called Keep
//	calls of Keep that wait               1024; then ErrFull
//	ops on actors under way               128; so at most as many are taken over in a Step
//	ops on zones under way                48, whether they are taken, handed, split or merged; the others follow as the store answers
//	ops on pages under way                16; the same
//	ops on leases and lists of servers    24, of those that are over or to be ended; the same. With all of these there is room for the server's own lease in natskv, which takes 256
//	calls of Save in a Step               32
//	a page of a server's actors           256 of them, 1288 bytes
//	work in a Step                        besides, two looks at each actor that is kept, and one at its durable fields
//
// A value in the store that was damaged, or is of another version, ends nothing: its server is over when the value doesn't change for Lease, a zone is taken by an epoch above all
// former ones, and the record of an actor is looked at each second until it can be read: Counters.Damaged counts that.
//
// # Keys of the store
//
// Numbers and texts are as above. The keys begin with KeeperConfig.Name.
//
//	server.ID        1 version 4 | 1 flags: 1 over, 2 it leaves | number beat: above a random number of this start, which is 1<<40 or more where zones may be split | number seen: the revision of the last end of a lease that it has dealt with | number Lease in milliseconds
//	                 number Away in milliseconds | number the last round of asking that it doesn't rely on any more | number what its actors weigh, in thousandths, and one more: 0 is of a server that doesn't weigh them | heir: who takes over
//	zone.NAME        1 version 1 | number epoch | holder
//	                 of one that is split: 1 version 2 | number epoch | for each part: 1 twice how often its cell was halved, and one more if it is calm | holder. Parts are in the order of Table.Servers' quarters, each followed by what follows it in its own square
//	list.ID.PAGE     1 version 1 | for each actor that the server may have a record of: number id
//	actor.NUMBER     1 version 1 | number epoch | number write | holder | class | state
//	                 without a class: the actor was destroyed, and a first write of it may be under way still, which must find a record. It is deleted next
package mesh
