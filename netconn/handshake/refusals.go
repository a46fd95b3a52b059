package handshake

import "github.com/bunchnet/bunchnet/netconn/internal/refusals"

// Refusals calls yield with the reason code and count of every kind of refusal, in a fixed order, also if the count is 0.
func (c *ServerCounters) Refusals(yield func(reason string, n uint64) bool) {
	refusals.Each(yield, c.Malformed.refusals(), []refusals.Count{
		refusals.Of("wrong_type", c.WrongType), refusals.Of("wrong_version", c.WrongVersion), refusals.Of("wrong_session", c.WrongSession), refusals.Of("cookie_expired", c.Expired),
		refusals.Of("wrong_secret", c.WrongSecret), refusals.Of("bad_cookie", c.BadCookie), refusals.Of("replayed", c.Replayed), refusals.Of("late_repeat", c.LateRepeat),
		refusals.Of("server_full", c.NoRoom), refusals.Of("restart_asked", c.RestartRequests), refusals.Of("unknown_restart", c.UnknownRestart), refusals.Of("too_small", c.TooSmall),
		refusals.Of("restarts_limited", c.RestartsLimited), refusals.Of("upgrades_limited", c.UpgradesLimited), refusals.Of("no_randomness", c.RandomnessFailed),
	})
}

// Refusals calls yield with the reason code and count of every kind of refusal, in a fixed order, also if the count is 0.
func (c *ClientCounters) Refusals(yield func(reason string, n uint64) bool) {
	refusals.Each(yield, c.Malformed.refusals(), []refusals.Count{
		refusals.Of("wrong_type", c.WrongType), refusals.Of("wrong_version", c.WrongVersion), refusals.Of("wrong_client_id", c.WrongClientID),
		refusals.Of("wrong_session", c.WrongSession), refusals.Of("wrong_cookie", c.WrongCookie), refusals.Of("unexpected", c.Unexpected),
		refusals.Of("restart_unlikely", c.RestartUnlikely),
	})
}

// refusals is the malformed packets.
func (m *Malformed) refusals() []refusals.Count {
	return []refusals.Count{
		refusals.Of("empty", m.Empty), refusals.Of("zero_last_byte", m.ZeroLastByte), refusals.Of("wrong_magic", m.WrongMagic), refusals.Of("not_handshake", m.NotHandshake),
		refusals.Of("too_short", m.TooShort), refusals.Of("unknown_packet", m.UnknownType), refusals.Of("contradictory", m.Contradictory),
	}
}
