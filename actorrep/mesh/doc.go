// Package mesh takes players from one server to another while they play. The client connects to the next server while the old one still plays the player. The player's state goes
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
// At any time one server at most. The old one plays until it has heard that the client is at the next one, and then gives the player away: it saves the state and doesn't play until it has an
// answer. When the next server has the state, the player is no longer the old one's (Game.Moved), and the next one plays when it hears that (done, which is repeated until it answers). When there
// is no answer within FreezeFor, or the client doesn't get to the next server within TravelFor, or that one refuses or is gone, the player stays (Game.Stays). The player stands still for one and a
// half round trips between the servers, and their ticks. Its client needn't see that: it predicts.
//
// A player who was given to a server that is gone, or was being given by one, is lost: Server.Gone counts it in Lost, Client.Lost reports it, and the player logs in again, with what the game keeps
// elsewhere. When the path between the servers breaks in the moment between "got it" and "done", the player plays nowhere until there is one again.
//
// # What the client sees
//
// It has a World for each connection, as by session. Its next World fills before the player moves, and is interpolated already when Moved says to draw it. Actors that are on both servers have the same
// id in both Worlds (actorrep.Config.IDs, World.SpawnAs), so what the game keeps for an actor goes on. The player's own actor goes with predict.Class.Depart in Game.Save, Arrive in Game.Play, Stay in
// Game.Stays, and Follow on the client. In Game.Moved the game leaves the actor alone until the client's connection has ended. A client draws the next World when it is Client.Server's and its own actor is
// predicted there.
//
// ClientConfig.Ready holds the travel back until the next World is shown as well as the present one. A second and a half after all actors are there, both are drawn at the same time; after 0.3 s they
// differ by 50 ms, which shows as a step back. At 50 ms each way and 2 % loss, between clients and servers and between servers, what is drawn stands still for at most 17 ms in 99 of 100 travels; 2 of
// 20362 inputs come too late for their tick, and 12 when nobody travels (go test ./actorrep/mesh -run City -city 2 -v; 100 travels in virtual time, frames of 16.7 ms). They are those of the lost packets: without
// loss no input is lost (TestDance).
//
// # Trust
//
// Packets between servers are sealed with ServerConfig.Key (XChaCha20-Poly1305, over both servers' IDs): who carries them can't read or change them, pass them to another server or as another's. A
// packet that comes again does nothing. A client never has the state: it can say nothing but that it is there, what messages it has, and its own messages. Who it is, is the connection's to prove: a ticket
// is best a connect token for one server and one player. A client goes only where the server that plays it sends it. The servers of a mesh trust each other.
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
//	number     attempt: number of the travel, by the server that the player leaves
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
package mesh
