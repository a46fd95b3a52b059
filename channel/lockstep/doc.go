// Package lockstep keeps the same game running on several machines by exchanging only the players' commands. Turn by turn
// every machine executes the same commands, and so has the same state. It suits games with many units and few players.
//
// The package runs no simulation and has no clock of its own. The game must be deterministic: integers or fixed point,
// its own random numbers from a common seed, no dependence on the order of maps. Hashes of the state detect when it isn't.
//
// # Who does what
//
//	Peer (a player) --- commands, hashes, acks --> Host --- log of turns --> every Peer
//
// The Host relays commands and decides. Its log defines each turn, so all agree on who was in the game, whose
// commands were left out, and from which turn a new delay holds. The Host needs no simulation, and runs beside a player
// or on a server. A player on the host's machine is a Peer like the others. Spectators are Peers too, numbered from
// Players on. They get the turns SpectatorDelay turns later (default 0). Nothing waits for them.
//
// # A turn
//
//	Peer executes turn N            its commands are for N+Delay         host has all of N+Delay
//	Next, simulate, Done(hash) ---> sealed, and repeated until acked --> complete: into the log
//
// A larger delay hides a longer round trip to the host; a DelayPolicy adapts it. When it grows, the turns in between
// have no commands. When it shrinks, commands wait for the next turn that isn't sealed.
//
//   - Redundancy: every packet repeats everything unacked, so a lost packet costs no round trip. Commands that don't fit one packet go on in the
//     next, and new ones have a packet of their own. A peer that is more than 4 packets behind gets the log in a window instead, resent on timeouts.
//   - Stalls: when a player's commands are missing, Wait stops the game, and drops the player in the end; Substitute
//     continues without them. With both, DropAfter and StallPercent bound the time for which a player may stop the game,
//     over all its sessions. A dropped player waits longer each time before it may rejoin (RejoinAfter). To let players
//     vote, count the votes in the game and call Host.Drop.
//   - Before turn 0: Host.SetSetup distributes what the game begins with, for example a Setup: seed, map, settings, places.
//     A player that has called Peer.Accept for it is Ready. Start ends this phase.
//   - Late join, reconnect: the peer gets the log from turn PeerConfig.Have on, or the game's snapshot (Host.SetSnapshot)
//     and the turns since, whichever is shorter. A Joined event follows when it has caught up.
//   - Desync: hashes are compared turn by turn. A Desynced event in a later turn names the player whose hash differs from
//     that of more than half of the players, and the first such turn. When no hash has more than half, as always with two
//     players, the event is Split and names nobody, unless the game on the host's machine decides (Host.Judge). A player
//     that was cut off or hadn't joined is judged only by two or more, and more than half, of the players in the game
//     then. With Config.Parts a Differs event says which parts of the state are wrong. Host.Mend gives that player the
//     snapshot and the turns since; the others continue.
//   - The host is gone: another machine, or the same one after a restart, takes over (Peer.Resume, HostConfig.Resume). The
//     players agree on which; the one that has executed the most turns loses the fewest. All begin a session with it, and
//     give Have and Generation. A player that has turns which the new host lacks gets the host's state. When two machines take over
//     at once, there are two games; a player that changes from one to the other gets the other's state.
//   - Replay: a Recorder writes the turns as they are executed, with snapshots; OpenReplay plays and seeks in the file.
//
// # The caller's loop
//
//	peer.Receive(now, packet)             // for each received packet
//	if turn is due {
//		if t, ok := peer.Next(); ok {     // not ok: stalled, see Waiting
//			for player, cmd := range t.Commands() { ... }
//			simulate()
//			peer.Submit(cmd)              // the local player's
//			peer.Done(hash)
//		}
//	}
//	peer.Tick(now)                        // and host.Receive, host.Tick where the host is
//
// now is the time by any clock of that machine, a time.Since of when it began for example. It may count from anywhere, and be set ahead or back.
//
// When Peer.Behind is above 0, execute that many turns at once before the one that is due. They don't change the timing of turns.
//
// # Why a star
//
// Players don't send to each other. A turn must be the same for all, even when a player leaves, is substituted or changes
// the delay in it. Without a host the players would need a protocol to agree on each turn that loses a member. A mesh of n
// players also needs n*(n-1)/2 paths through the players' routers. The star needs n paths, one judge and one log. Its
// price is delay: commands travel to the host and on, instead of straight to the other players. For a small game without
// a server the Host runs on a player's machine, best the one with the shortest paths. When that player leaves, another
// machine takes over.
//
// # What differs from lockstep as it is usually described
//
//	the usual description                      here                                why
//	full mesh                                  star                                see above
//	a turn gets longer with the worst path     TurnInterval is fixed, the delay    units move at an even pace; one player
//	                                           is 1 to MaxDelay turns              raises it by Lead turns at most
//	commands run two turns later               Delay turns, 2 to begin with        paths differ
//	all wait for the slowest                   for DropAfter and StallPercent of   strangers play as well
//	                                           the time; or Substitute
//	every packet repeats all unacked inputs    the same; of turns up to 4 packets  who catches up would get everything again
//	                                           full, above that a window           with each packet
//	32 or 33 packets acked by a bit field      one position: all before it has     both streams are read in order only;
//	                                           arrived                             packetnotify/ackbits has the bit field
//	packets at frame rate, keep-alives beside  one for each turn, 20 a second, or  those are the keep-alives; package link
//	                                           one a second when turns are longer  pings once a second
//	ring of 256 or 1024 entries by sequence    rings: hashes of 256 turns, inputs  nobody in the game is farther apart
//	                                           of MaxDelay+2 turns, rounded up to
//	                                           a power of two
//	a playout buffer at the receiver           the delay, and Peer.Behind          the delay is in the game, alike for all
//	a checksum now and then; a desync ends     a hash of every turn; named,        it is 8 bytes a turn, and the first turn
//	the game                                   by parts, mended                    that differs is what a bug hunt needs
//	a player who leaves ends or pauses it      Dropped event; rejoins from log or  the game's rule decides what the units do
//	                                           snapshot
//
// # Transport
//
// Transport has one method. The Host paces what it sends (HostConfig.Rate), and so does a connection below. A Transport may be
//
//   - a *link.Link, with MaxPacket 255;
//   - a datagram socket with an integrity check below;
//   - a channel of netconn that keeps payload boundaries: unreliable, as OnChannel, or reliable with a method Reliable
//     that returns true.
//
// Prefer unreliable ones: packets repeat what was lost, while a reliable transport holds back everything after a loss. A
// game of 30 s, go run ./examples/lockstep -desync, takes 31 s over datagrams and 34 s with -over link, at 10 % loss and
// 40 ms each way. At 30 % loss (-loss 30) it takes 36 s, and 43 to 48 s with -over link. The transport identifies the
// player: the Host refuses a packet that names another one.
//
// # Wire
//
// Version 3, little-endian; v is a uvarint (7 bits a byte, low first). All packets begin:
//
//	+--------+----------+------------+
//	| type 8 | player 8 | session 32 |
//	+--------+----------+------------+
//
//	1 Hello    peer  version 8 | agreement 32 | proof 64 | have v | max snapshot v | generation v
//	6 Challenge host proof 64
//	2 Welcome  host  key 32 | base v | setup version v | setup bytes v | start v | snapshot bytes v | delay 8 |
//	                 active v | life v | generation v
//	3 Stream   host  next input v | next hash v | stamp 16 | waiting v | offset v | bytes
//	4 Input    peer  received v | executed v | stamp 16 | hold ms 16 | life v | first turn v |
//	                 count 8 | count * (size v | commands) | first hash turn v | hashes 64 each
//	5 Denied   host  reason 8
//	7 Ready    peer  setup version v
//	8 Parts    peer  turn v | hashes 64 each; until the host answers with turn v
//
// session is, in a Hello and in what the host sends, the number that the peer gave its session (PeerConfig.Session). In
// Input, Ready and Parts, and in a Denied that answers Input, it is the key of the Welcome. A host that gets a Hello
// of its version without the right proof changes nothing and answers with a Challenge, which is shorter. The proof is a hash of the
// host's secret, the player, the session and the number of Connects. Unless the transport is Proven, an address that
// hasn't sent a proof gets nothing larger.
//
// agreement is the FNV-1a hash of what both Configs must agree on. The stream is the setup's bytes and the snapshot's, if
// the session begins with them, and then the turns from start on, each as below. Its first byte is at position base. When
// the setup changes, or a player is mended, another Welcome begins another stream, at a base above all positions used.
//
//	size v | flags 8 | [events] | [substituted v] | [players v, each: size v | commands]
//	flags: 1 events, 2 commands, 4 substituted; masks have a bit for each player
//	events: count v, each: kind 8 | player 8 | value v, and of Desynced and Split: got 64 | want 64, of Split and Differs: who v
//	commands: size v | bytes, one after the other, none empty
//
// # Choosing
//
// Choose lockstep when the state is large, the commands are few and the simulation is
// deterministic. A player's own commands take effect Delay turns later. Choose actorrep for
// a server with authority that sends state; actorrep/prediction for quick response.
//
// # Bounds
//
//	commands of a player and turn     MaxInput bytes; more: ErrInputFull
//	commands of a player in the long run  InputRate bytes a turn; the Host refuses more
//	turns a player may be ahead       MaxDelay; more is refused
//	log                               LogBytes and LogTurns; the oldest turns go
//	in flight to a player             Window; 2 packets before the first ack
//	sent to a player                  Rate bytes a second, over all its sessions
//	time a player may hold the game   DropAfter, and StallPercent of the time
//	setup                             64 KiB; snapshot MaxSnapshot, five of them with a SpectatorDelay, and four more while peers
//	                                  load them; larger ones are an error of SetSetup or SetSnapshot
//	delay raised by one player        AdaptiveDelay.Lead turns
//	received and not executed         ReceiveBuffer; what has no room is dropped, and sent again
//	received before its turn          16 packets of MaxPacket; others are dropped, and sent again
//	hashes                            256 turns; older ones aren't compared. The Host waits for them for 2*MaxDelay+16 turns,
//	                                  longer for those of substituted players, and for 256 turns before it names who keeps one back
//	events of a turn                  one of a kind and player
package lockstep
