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
// [Host] runs beside the server's world, [Follower] with every player, the host's own too. They do I/O only through the game's drivers, and belong
// to the goroutine that ticks these.
//
// # Who is who
//
// The order of succession is the host's list, which all players have beforehand, so no election can end in a tie. For each candidate the host makes a
// key, which only that candidate gets, and for each player tokens of that key. So nobody without a candidate's key can pose as that candidate, only players
// known to the host can connect, and no candidate can pose as a player at another candidate. Keys and tokens are as secret as the connections
// that carry them: use links that encrypt.
//
// A candidate keeps its key under the next host, which learns it from the candidate. That host has the other players and candidates in its plan from the beginning, for up to 10 s as
// silent ones. So when it goes before all players have found it or have its tokens, the tokens and the checkpoint of the host before still serve.
//
// A host is trusted: it has the authority, and so has its successor. A player among the candidates gets all of the game's state in checkpoints, even
// what only others may see; [HostConfig.Trust] says who may be one. Candidates are reached at the address that the host saw, and the port that they offered.
// Behind a NAT without port forwarding they can't be reached, and are passed over; [HostConfig.Addr] may name another address.
//
// # Splits
//
// When the network splits, a candidate continues the game only with more than half of the players, the old host not counted. A host that hears less than half of its
// players pauses ([Host.Ready]), and continues when it hears them again. So at most one of the parts plays while connections last, or two for the
// Silence after which the host notices. When the players don't come back before their connections time out (driver.Config.Timeout), the host continues with the
// remaining ones. If others have continued without it, there are two games from then on. Fewer than half of the players don't continue, and get
// ErrNobody. A player who closes the connection as if changing to another host counts as silent for 10 s,
// and stays in the plan: players left at a host that was paused, its own player too, find the game at the candidate that has it.
//
// # Settings
//
// A host must send to each player more often than Silence: set KeepAlive (driver.Config) to 50 ms. That also makes logins under loss faster.
//
// A checkpoint is made within one Step and sent as a whole each time, so this suits worlds of hundreds of actors. One of 300 actors, 7.5 kB, takes 0.3 to 0.6 ms on one
// busy core, and makes about three allocations for each actor, 215 kB together (go test ./actorrep/migrate -run xxx -bench Checkpoint). It is sent, as tokens are, in bandwidth that
// the game leaves, to a player who joins once its client has answered which classes it has: the world comes first. None is made while all candidates are still receiving the one before.
//
// A player who joins later needs a token of the current host's key ([Succession]'s Link); the game must provide it.
//
// # What isn't promised
//
// A player has tokens for three dials of each candidate. When so many successors go, one after the other and before their own tokens have arrived, that these are spent, the
// game ends. When a successor goes before it has sent a checkpoint of its own, the game goes on from that of the host before. A candidate that lies may claim the game as soon as the host is silent, and a player
// that lies may count for two candidates at once. A former host knows the candidates' keys, and could pass for a player at one of them, or for one of them. A player who was kicked has tokens of the
// candidates for a day: a list of who is banned is the game's to save with the checkpoint, and to look at in Authorize (driver.Netcode). A candidate whose address
// changes isn't reached at the new one. Without [HostConfig.Own] the first host's own player is counted, and may be a candidate, like any other. Spectators
// (actorrep/spectate) don't go along. The host chooses the addresses of the candidates, and its players dial them, at most once in Silence while it
// is heard: [FollowerConfig].Dial may refuse an address.
//
// # What is lost
//
// Whatever happened since the last checkpoint that the successor has completely: at most Interval plus the time to send it, when each checkpoint arrives
// before the next. Nothing is lost when the host leaves by [Host.Leave], unless the candidate with its last checkpoint leaves at the same time: the others
// have that checkpoint only if it arrived within another 200 ms. Reliable calls in flight are lost, and whatever a Save doesn't store.
package migrate
