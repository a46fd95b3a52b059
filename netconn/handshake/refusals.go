package handshake

// Refusals calls yield with the reason code and the count of every refusal, in a fixed order, zeros too.
func (c *ServerCounters) Refusals(yield func(reason string, n uint64) bool) {
	m := &c.Malformed
	for _, r := range [...]struct {
		reason string
		n      uint64
	}{
		{"empty", m.Empty}, {"zero_last_byte", m.ZeroLastByte}, {"wrong_magic", m.WrongMagic}, {"not_handshake", m.NotHandshake},
		{"too_short", m.TooShort}, {"unknown_type", m.UnknownType}, {"contradictory", m.Contradictory},
		{"wrong_type", c.WrongType}, {"wrong_version", c.WrongVersion}, {"wrong_session", c.WrongSession}, {"cookie_expired", c.Expired},
		{"wrong_secret", c.WrongSecret}, {"bad_cookie", c.BadCookie}, {"replayed", c.Replayed}, {"late_repeat", c.LateRepeat}, {"server_full", c.NoRoom},
		{"unknown_restart", c.UnknownRestart}, {"too_small", c.TooSmall}, {"restarts_limited", c.RestartsLimited},
		{"upgrades_limited", c.UpgradesLimited}, {"no_randomness", c.RandomnessFailed},
	} {
		if !yield(r.reason, r.n) {
			return
		}
	}
}
