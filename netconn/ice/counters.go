package ice

import (
	"errors"
	"sync/atomic"
)

// Counters counts what a Host or a Client did so far.
type Counters struct {
	// Sessions counts those that found a path. Direct, Routed and Relayed count the first path of each; PathChanges counts later ones of another kind or
	// to another address.
	Sessions, Direct, Routed, Relayed, PathChanges uint64
	Received, Sent                                 uint64 // datagrams of sessions
	// Unread counts received datagrams that were dropped because the queue for reads, or their sender's share of it, was full.
	Unread uint64
	// NoPath counts datagrams that weren't sent because their peer has gone, has no path yet, or hasn't answered a check for 30 s.
	NoPath uint64
	// Unsealed counts datagrams that weren't sent by a relay because they aren't netcode's. Use driver.Netcode.
	Unsealed uint64

	// Strangers counts datagrams that belong to no session. Forged counts checks whose signature or source is wrong.
	Strangers, Forged uint64
	// TooManyAddrs counts checks and candidates from one peer beyond 48 addresses, TooFast a peer's checks beyond 100 a second.
	TooManyAddrs, TooFast uint64
	// BadCandidates counts candidates that were refused, and BadMessages messages; see Message.
	BadCandidates, BadMessages uint64
	// Held counts checks that weren't sent, because too many to the same address or network went unanswered.
	Held uint64

	// Refused sessions and ended ones, by reason. Full: MaxGuests or MaxConnecting was reached. NoWay: no path was found in time. Lost: all paths failed.
	// Unanswered: the driver never answered the guest. Idle: the driver no longer sends to it.
	Full, NoWay, Lost, Unanswered, Idle uint64
	// Restarts counts sessions that found a path anew after all had failed; see Config.Redial. Unknown counts guests that wanted to, but have no session.
	Restarts, Unknown uint64
	// RelaysLost counts allocations at relays that ended early. RelayErrors counts those that failed.
	RelaysLost, RelayErrors uint64
}

// counters is Counters that several goroutines add to.
type counters struct {
	sessions, direct, routed, relayed, pathChanges                             atomic.Uint64
	received, sent, unread, noPath, unsealed                                   atomic.Uint64
	strangers, forged, tooManyAddrs, tooFast, badCandidates, badMessages, held atomic.Uint64
	full, noWay, lost, unanswered, idle, relaysLost, relayErrors               atomic.Uint64
	restarts, unknown                                                          atomic.Uint64
}

// path counts a session's first path.
func (c *counters) path(p Path) {
	switch p {
	case Direct:
		c.direct.Add(1)
	case ByRelay:
		c.relayed.Add(1)
	default:
		c.routed.Add(1)
	}
}

// count counts why a session ended.
func (c *counters) count(why error) {
	switch {
	case errors.Is(why, ErrNoWay):
		c.noWay.Add(1)
	case errors.Is(why, errIdle):
		c.idle.Add(1)
	case errors.Is(why, errUnanswered):
		c.unanswered.Add(1)
	case errors.Is(why, ErrLost):
		c.lost.Add(1)
	}
}

func (c *counters) get() Counters {
	return Counters{
		Sessions: c.sessions.Load(), Direct: c.direct.Load(), Routed: c.routed.Load(), Relayed: c.relayed.Load(), PathChanges: c.pathChanges.Load(),
		Received: c.received.Load(), Sent: c.sent.Load(), Unread: c.unread.Load(), NoPath: c.noPath.Load(), Unsealed: c.unsealed.Load(),
		Strangers: c.strangers.Load(), Forged: c.forged.Load(), TooManyAddrs: c.tooManyAddrs.Load(), TooFast: c.tooFast.Load(),
		BadCandidates: c.badCandidates.Load(), BadMessages: c.badMessages.Load(), Held: c.held.Load(),
		Full: c.full.Load(), NoWay: c.noWay.Load(), Lost: c.lost.Load(), Unanswered: c.unanswered.Load(), Idle: c.idle.Load(),
		RelaysLost: c.relaysLost.Load(), RelayErrors: c.relayErrors.Load(), Restarts: c.restarts.Load(), Unknown: c.unknown.Load(),
	}
}
