// Package lockstep keeps the same game running on several machines by exchanging
// nothing but the players' commands: turn by turn everyone executes the same commands and so
// has the same state. It suits games with many units and few players.
//
// It runs no simulation, knows no units and decides nothing by a clock of its own. The game must be
// deterministic: integers or fixed point, its own random numbers from a common seed, no
// order of maps. Where it isn't, the hashes tell.
//
// # Who does what
//
//	Peer (a player) --- commands, hashes, acks --> Host --- log of turns --> every Peer
//
// The Host relays and is the judge: a turn is what its log says, so all agree about
// who was in the game, whose commands were not waited for, and from which turn a new delay
// holds. It needs no simulation and runs beside a player or on a server. A player on
// the host's machine is a Peer like the others. Spectators are Peers too, with numbers from Players on: they get the
// turns, some turns late if the Host says so, and nothing waits for them.
//
// # A turn
//
//	Peer executes turn N            its commands are for N+Delay         host has all of N+Delay
//	Next, simulate, Done(hash) ---> sealed, and repeated until acked --> complete: into the log
//
// A larger delay hides longer ways to the host and back; a DelayPolicy adapts it. When
// it grows, the turns in between have no commands; when it shrinks, commands wait until
// turns are open again.
//
//   - Redundancy: every packet repeats all that isn't acked, so a lost one costs no round trip.
//     Who is far behind (over 4 packets) gets the log in a window instead, resent on timeouts.
//   - Stalls: Wait holds the game and drops the player in the end; Substitute goes on without the
//     player's commands. Either way the time for which a player may hold the game is bounded (DropAfter and
//     StallPercent), over all its sessions, and who was dropped waits longer each time (RejoinAfter). A vote
//     is the game's: count it, and call Host.Drop.
//   - Before turn 0: Host.SetSetup hands out what the game begins with, for example a Setup: seed, map, settings, who is
//     where. Who has called Peer.Accept for it is Ready; Start freezes it.
//   - Late join, reconnect: the log is replayed from turn PeerConfig.Have on, or the game's snapshot
//     (Host.SetSnapshot) and the turns since, whichever is shorter. Who has caught up is Joined.
//   - Desync: hashes are compared turn by turn; the first turn and player that differ from more than half of those
//     in the game become an Event of a later turn. When no half agrees, as always with two, Split says so and
//     nobody is named, unless the game on the host's machine says what is right (Host.Judge). Who was dark, or wasn't there yet,
//     isn't judged by the few who were. With Config.Parts a
//     Differs event says which parts of the state are wrong. Host.Mend gives that player the snapshot and the turns
//     since; the others play on.
//   - The host is gone: another machine, or the same after a restart, takes the game up (Peer.Resume,
//     HostConfig.Resume). Which one, the players agree on: the one who has executed most turns loses fewest. All begin a
//     session with it, with Have and Generation; who has turns that the new host hasn't gets its state.
//   - Replay: a Recorder writes the turns as they are executed, with snapshots; OpenReplay plays and seeks in the file.
//
// # The caller's loop
//
//	peer.Receive(now, packet)             // whatever came
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
// Execute Behind turns at once before the one that is due; they don't move the turn's timer.
//
// # Why a star
//
// Players don't send to each other. A turn must be the same for all, also when a player leaves in it, is
// substituted in it or changes the delay with it: among equals that takes an agreement for each turn that loses a
// member, and a mesh of n needs n*(n-1)/2 paths that strangers' routers let through. The star needs n, one judge and
// one log. It costs delay: commands travel to the host and on, instead of straight to the farthest. For a small game
// without a server the Host runs on a player's machine, best the one in the middle; nothing else relays, and when it leaves
// another one resumes.
//
// # What differs from the articles
//
//	the articles on lockstep                   here                                why
//	full mesh                                  star                                see above
//	a turn gets longer with the worst path     TurnInterval is fixed, the delay    units move at an even pace; one player
//	                                           is 1 to MaxDelay turns              raises it by Lead turns at most
//	commands run two turns later               Delay turns, 2 to begin with        paths differ
//	all wait for the slowest                   for DropAfter and StallPercent of   strangers play as well
//	                                           the time; or Substitute
//	every packet repeats all unacked inputs    the same; of turns up to 4 packets  who catches up would get everything again
//	                                           full, above that a window           with each packet
//	32 or 33 packets acked by a bit field      positions: all before was received  both streams are read in order only;
//	                                                                               packetnotify/ackbits has the bit field
//	packets at frame rate, keep-alives beside  one for each turn, 20 a second      those are the keep-alives; package link
//	                                                                               pings once a second
//	ring of 256 or 1024 entries by sequence    hashes of 256 turns, inputs of the  nobody in the game is farther apart
//	                                           least power of two over MaxDelay+2
//	a playout buffer at the receiver           the delay, and Peer.Behind          the delay is in the game, alike for all
//	a checksum now and then; a desync ends     a hash of every turn; named,        it is 8 bytes a turn, and the first turn
//	the game                                   by parts, mended                    that differs is what a bug hunt needs
//	a player who leaves ends or pauses it      Dropped event; rejoins from log or  the game's rule decides what the units do
//	                                           snapshot
//
// # Transport
//
// Transport is one method. What it takes is paced by the Host (HostConfig.Rate) and, over a connection, by the
// connection. A *link.Link is one, with MaxPacket 255; so is a datagram
// socket with integrity beneath it, or a channel of netconn with its payload boundaries
// (unreliable, or reliable with a method that says so). Where there is a choice take the unreliable one: packets
// repeat what was lost by themselves, while a reliable transport holds back all that came after
// it. At 10 % loss and 80 ms a 30 s game of examples/lockstep takes 30.7 s over datagrams and 33 s over
// package link, at 30 % 35 s and 90 s. The transport says whose packets
// are whose: the Host refuses a packet that names another player than its transport's.
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
// session is the peer's number for its session in a Hello and in all that the host sends, and the key of the Welcome in
// Input. A host that gets a Hello without the right proof answers with a Challenge, which is shorter, and changes
// nothing; the proof is a hash of its secret, the player, the session and the number of Connects. Nothing else goes to
// an address before that, unless the transport is Proven.
//
// agreement is the FNV-1a of what both Configs must agree on. The stream is the setup's bytes and the snapshot's, if the
// session begins with them, and then the turns from start on, each as below. Its first byte is at position base. When the
// setup changes, or a player is mended, another Welcome begins another stream above all positions used.
//
//	size v | flags 8 | [events] | [substituted v] | [players v, each: size v | commands]
//	flags: 1 events, 2 commands, 4 substituted; masks have a bit for each player
//	events: count v, each: kind 8 | player 8 | value v, and of Desynced and Split: got 64 | want 64, of Split and Differs: who v
//	commands: size v | bytes, one after the other, none empty
//
// # Choosing
//
// Choose lockstep when the state is large, the commands are few and the simulation is
// deterministic; a player waits Delay turns for the own commands. Choose actorrep for
// a server with authority and state on the wire; actorrep/prediction for quick response.
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
//	setup                             64 KiB; snapshot MaxSnapshot, five of them with a SpectatorDelay; both are told when
//	                                  they exceed it
//	delay raised by one player        AdaptiveDelay.Lead turns
//	received and not executed         ReceiveBuffer; what finds no room comes again
//	hashes                            256 turns; not waited for after MaxDelay+16 turns, but for those of players that are
//	                                  substituted; what is older counts as not compared
//	events of a turn                  one of a kind and player
package lockstep
