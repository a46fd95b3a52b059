// Package migrate lets a game continue when the host of a listen server leaves or crashes (host migration): one of the players
// becomes the host, with the state of the last checkpoint, and the others connect to it.
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
// A [Host] runs beside the server's world. A [Follower] runs with every player, the host's own too. They do I/O only through
// the game's drivers, and belong to the goroutine that ticks these.
//
// # Who is who
//
// The order of succession is the host's list of candidates. All players have it beforehand, so no election can end in a tie.
// For each candidate the host makes a key, which only that candidate gets, and for each player tokens of that key. So only
// the candidate can run a server for these tokens, only players known to the host can connect, and no candidate can pose as
// a player at another candidate. Keys and tokens are as secret as the connections that carry them: use links that encrypt.
//
// A candidate keeps its key under the next host, and tells it to that host. The next host's plan has all players and
// candidates from the beginning; those that haven't come count as silent for up to 10 s. So when that host goes before all
// players have found it or have its tokens, they use the tokens and the checkpoint of the host before.
//
// A host is trusted: it has the authority, and so has its successor. A candidate gets all of the game's state in checkpoints,
// even what only others may see; [HostConfig.Trust] says who may be one. Players dial a candidate at the address that the host
// saw and the port that the candidate offered; [HostConfig.Addr] may name another address. A candidate behind a NAT without
// port forwarding can't be reached, and the next one takes its turn.
//
// # Splits
//
// When the network splits, a candidate continues the game only with more than half of the players, the old host not counted. A
// host that hears less than half of its players pauses ([Host.Ready]), and continues when it hears them again. So at most one
// part plays while connections last; two may until the host notices, after Silence, and until connections time out where several machines stand still for
// seconds, one after the other. When the players don't
// come back before their connections time out (driver.Config.Timeout), the host continues with the remaining ones. If others
// have continued without it, there are two games from then on. A part without more than half of the players and without the
// old host doesn't continue: its players get ErrNobody.
//
// A player who changes to another host counts as silent for 10 s at the old one, and stays in its plan. So the players that
// are left at a paused host, its own player too, find the candidate that has the game.
//
// # Settings
//
// A host must send to each player more often than once in Silence: set KeepAlive (driver.Config) to 50 ms. That also makes
// logins under loss faster.
//
// A checkpoint is made within one Step, and each one is sent whole, so this suits worlds of hundreds of actors. One of 300
// actors, 7.5 kB, takes 0.3 to 0.6 ms on one busy core, and makes about three allocations for each actor, 215 kB together (go
// test ./actorrep/migrate -run xxx -bench Checkpoint). Checkpoints and tokens use the bandwidth that the game leaves. A player
// who joins gets them once its client has answered which classes it has: the world comes first. No checkpoint is made while
// all candidates are still receiving the one before.
//
// A player who joins after a migration needs a token of the present host's key ([Succession]'s Link); the game must provide it.
//
// # What isn't promised
//
//   - A player has tokens for three dials of each candidate. When successors go, one after the other, before their own tokens
//     have arrived, these may be used up; then the game ends.
//   - When a successor goes before it has sent a checkpoint of its own, the game continues from that of the host before.
//   - A dishonest candidate may claim the game as soon as the host is silent, and a dishonest player may count for two
//     candidates at once. A former host knows the candidates' keys, and could pose as a candidate, or as a player at one.
//   - A player who was kicked has tokens of the candidates for a day. To keep it out, save a list of banned players with the
//     checkpoint, and check it in Authorize (driver.Netcode).
//   - A candidate whose address changes isn't reached at the new one.
//   - Without [HostConfig.Own] the first host's own player counts, and may be a candidate, like any other.
//   - Spectators (actorrep/spectate) aren't migrated.
//   - The host chooses the addresses of the candidates, and its players dial them, at most once in Silence while the host is
//     heard: [FollowerConfig].Dial may refuse an address.
//
// # What is lost
//
// All that happened since the last checkpoint that the successor has whole: at most Interval plus the time to send it, when each
// checkpoint arrives before the next. Nothing is lost when the host leaves by [Host.Leave], unless the candidate that has the
// last checkpoint leaves at the same time: the others have it only if it arrived within another 200 ms. Reliable calls in
// flight are lost, and what Save doesn't store.
package migrate
