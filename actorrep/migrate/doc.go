// Package migrate lets a game go on when the host of a listen server leaves or crashes (host migration): one of the players takes
// the host's place, with the state of the last checkpoint, and the others connect to it.
//
//	host                                              players
//	  | <-- offer: I could host, at this port             |
//	  | plan: who plays, who comes next, in order    -->  | to all, whenever that changes
//	  | tokens for each of those                     -->  | to all
//	  | a key, and each second a checkpoint          -->  | to the first Candidates of them
//	  x
//	      silent for Silence, or it said that it leaves:
//	      each player dials the candidates
//	      a candidate whose turn it is opens its server, and waits for more than half of the players
//	      then it is the host, publishes a plan of its own, and the game goes on
//
// [Host] is the part of the world's owner, [Follower] that of every player, the host's own too. Both do no I/O of their own but through the game's
// drivers, and belong to the goroutine that ticks them.
//
// # Who is who
//
// The order of succession is the host's list, which all have beforehand: nobody is elected by a vote that could be a tie. For each candidate the host
// makes a key, which it gets alone, and for each player tokens of that key. So whoever answers at a candidate's address without its key is
// nobody, a player is who the host knew, and no candidate can pass for a player at another. Keys and tokens are as secret as the connections that they come
// over: use links that encrypt.
//
// What a host says is believed: it has the authority, and so has the one after it. A player who is among the candidates gets all of the game's state
// in checkpoints, also what others alone may see; [HostConfig.Trust] says who may. Candidates are reached at the address that the host saw and the port
// that they offered. Behind a NAT that isn't forwarded nobody reaches them; [HostConfig.Addr] may name another address, and they are passed over otherwise.
//
// # Splits
//
// Where the network falls apart, a candidate goes on only with more than half of the players, the old host not counted; and a host that
// hears less than half of its players stands still ([Host.Ready]) and goes on when it hears them again. So while connections last at most
// one of the parts plays, or two for the Silence that it takes the host to notice. A host whose players don't come back is alone when their connections have timed out
// (driver.Config.Timeout) and goes on with who is left: if others have gone on without it, these are two games from then on. Players who are
// fewer than half go nowhere, and are told ErrNobody. A player who closes his connection as if he had gone to another host makes the host count him as silent for 10 s.
//
// # Settings
//
// A host must send to each player more often than Silence: choose a KeepAlive (driver.Config) of 50 ms, with which a login under loss is done sooner, too.
// A checkpoint is taken within one Step, and all of it is sent each time: for worlds of hundreds of actors. It goes in what the game leaves of the bandwidth. A player
// who joins later needs a token of the present host's key ([Succession]'s Link), which the game gives.
//
// # What is lost
//
// What happened since the last checkpoint that the successor has whole: Interval and the time it took to send, at most, when each comes
// through before the next. Nothing when the host leaves by [Host.Leave]. Reliable calls under way are lost, and what a Save doesn't keep.
package migrate
