// Package rollback plays a small game on 2 to 8 machines without waiting for the other players' inputs, as GGPO does. Each
// machine predicts that the others' inputs stay as they are, and simulates at once. When an input arrives that differs from
// the prediction, the machine loads the state of that frame and simulates again up to now. A player's own input takes
// effect after Delay frames, whatever the round trip is.
//
// The game must be deterministic, as for package lockstep, and able to save and load its state many times a frame.
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
// A machine that is MaxRollback frames ahead of a missing input waits for it.
//
//	s.Receive(now, player, packet)           // whatever came
//	if a frame is due {
//		advanced, err := s.Step(input)   // calls the Game's Save, Load and Advance
//		draw
//	}
//	s.Tick(now)                              // a packet to each, by the Transports
//
// now is the time by any clock of that machine, a time.Since of when it began for example. It may count from anywhere, and be set ahead or back.
//
// A Step that reports false has simulated no new frame. Then inputs are missing (Waiting), or a player hasn't been heard
// yet, or this machine is ahead of the others and skips a frame, one in eight at most.
//
// # Who sends what
//
// Each machine sends to each other one, directly or through a server that forwards: its own inputs that the other hasn't
// acked, which inputs of all players it has, how many frames it is ahead, and a checksum of a final state. Transports are
// those of package lockstep: a *link.Link, a *lockstep.OnChannel, or anything that takes datagrams. Prefer unreliable ones.
//
// A player that is silent for DropAfter, or given to Drop, is dropped once all others agree on it and have the same inputs
// of it; those with more inputs forward them. From then on its input is zeros, from the same frame on all machines. A
// dropped player can't come back: begin another session, with a state that the game hands over. Its Err is ErrDropped once it hears for a
// second that all who play on agree. What has waited while it stood still doesn't count, since those who said it may be out by now. Where paths were dark for so long that players have dropped each other, the larger part plays on, or of two that are alike the one with the lowest
// number. The others' Err is ErrDropped soon after the path is there again. What a player says that was given to Drop counts no more: where two have dropped
// each other and nobody else is left, both play on if the one with the higher number has given the other to Drop.
//
// It is for players who trust each other: any player can have another one dropped, can keep all others from going on by what it says of that, and can
// read all of the game's state.
//
// A player that leaves gives its own number to Drop. One that is out or has left says so while it calls Tick, and nobody waits for it, whatever DropAfter is.
//
// Spectators get the inputs of final frames, SpectatorDelay frames later. Each has a [Watcher]. When the player that it is connected to is out, and still calls
// Tick, they get the rest and Watcher.Err is ErrDropped.
//
// # Wire
//
// Version 1, little-endian; v is a uvarint, z a zigzag varint. A packet of a player:
//
//	type 8 = 1 | player 8 | agreement 32 | frame v | lead z | dropped 8 | players * (inputs z) | check v | [sum 64] | sections
//	section: player 8 | first v | count 8 | a bit for each: it is as the one before | those that aren't, InputSize each
//
// dropped has a bit for each player that is silent; the sender's own says that all others who are left have said the same.
// inputs is the first frame whose input of that player is missing, minus frame. check is the number of a frame, divided by
// CheckEvery, whose state's checksum follows; or 0 for none. The bits of a section begin with the lowest; the input before
// the first counts as zeros. The agreement is a hash of what all Configs must have in common. To a Watcher, and from it:
//
//	type 8 = 2 | 0 | agreement 32 | first v | count 8 | bits | inputs of all players, those that aren't as before
//	type 8 = 2 | 1 | agreement 32 | first v: what is before isn't kept any more
//	type 8 = 2 | 2 | agreement 32 | first v: there are none from there on, since the player is out
//	type 8 = 3 | watcher 8 | agreement 32 | next v
//
// From a player that is out or has left, to the others:
//
//	type 8 = 4 | player 8 | agreement 32
//
// # Bounds
//
//	players 8, spectators 8; inputs of 1 to 32 bytes; MaxRollback 1 to 16; Delay 0 to 16
//	inputs kept: 256 frames of each player; inputs more than 128 frames ahead are refused (ErrAhead)
//	states kept: MaxRollback+2, in memory that is reused
//	final inputs kept for spectators: 1024 frames; for a spectator farther behind, Watcher.Err is ErrBehind, and the
//	player it is connected to gets a Behind event
package rollback
