// Package rollback plays a small game on 2 to 8 machines without waiting for the other players' inputs: each simulates at once with what they
// last did, and when an input turns out to be another, goes back to that frame and simulates again (GGPO's way). The own input is
// felt after Delay frames, whatever the path; what others do is corrected as it comes.
//
// The game must be deterministic, as for package lockstep, and be able to save and load its state many times a frame.
//
// # A frame
//
//	                                        frames
//	   final                |            simulated            | now
//	   all inputs known     | some repeated from before       |
//	------------------------+---------------------------------+------ Step: save, advance
//	                        |<------ at most MaxRollback ---->|
//	                        ^ an input that isn't as it was repeated: load, and advance again to now
//
// Who is MaxRollback frames ahead of an input that is missing waits for it.
//
//	s.Receive(now, player, packet)           // whatever came
//	if a frame is due {
//		advanced, err := s.Step(input)   // calls the Game's Save, Load and Advance
//		draw
//	}
//	s.Tick(now)                              // a packet to each, by the Transports
//
// A Step that reports false has simulated no new frame: inputs are missing (Waiting), not everybody is there yet, or this machine
// is ahead of the others and lets them come closer, one frame in eight at most.
//
// # Who sends what
//
// Everybody sends to everybody (or a server forwards): the own inputs that the other hasn't acked, how far it has everybody's inputs, how far ahead it
// is, and a checksum of a final state. Transports are those of package lockstep: a *link.Link, a *lockstep.OnChannel, or anything that takes
// datagrams. The unreliable ones suit better.
//
// A player that is silent for DropAfter, or given to Drop, is dropped once all others have said so and have the same inputs of it: who
// has more forwards them. From then on its input is zeros in the same frame for all. Nobody comes back: begin another session with a state
// that the game hands over. Any player can have another dropped, and nobody can stop one who inspects what is hidden: it is for players who trust
// each other, as all games of this kind are.
//
// Spectators get what is final, some frames late if wanted: a [Watcher] each.
//
// # Wire
//
// Version 1, little-endian; v is a uvarint, z a zigzag varint. A packet of a player:
//
//	type 8 = 1 | player 8 | agreement 32 | frame v | lead z | dropped 8 | players * (inputs z) | check v | [sum 64] | sections
//	section: player 8 | first v | count 8 | a bit for each: it is as the one before | those that aren't, InputSize each
//
// inputs is the first frame of whose input nothing is known, less frame; check is a frame's number by CheckEvery, whose state's
// checksum follows, or 0. The bits of a section begin with the low one, and the one before the first is zeros. The agreement is a hash of what
// all Configs must have in common. For and of a Watcher:
//
//	type 8 = 2 | 0 | agreement 32 | first v | count 8 | bits | inputs of all players, those that aren't as before
//	type 8 = 2 | 1 | agreement 32 | first v: what is before isn't kept any more
//	type 8 = 3 | watcher 8 | agreement 32 | next v
//
// # Bounds
//
//	players 8, spectators 8; inputs of 1 to 32 bytes; MaxRollback 1 to 16; Delay 0 to 16
//	inputs that wait: 256 frames of each player; what is farther ahead is refused
//	states: MaxRollback+2, in memory that is used again
//	final inputs kept for spectators: 1024 frames; who is farther behind is told by Watcher.Err, and the player by an Event
package rollback
