package handshake

// Refusals calls yield with the reason code and the count of every refusal, in a fixed order, zeros too.
func (c *ServerCounters) Refusals(yield func(reason string, n uint64) bool) {
	c.Malformed.refusals([]refusal{
		{"wrong_type", c.WrongType}, {"wrong_version", c.WrongVersion}, {"wrong_session", c.WrongSession}, {"cookie_expired", c.Expired},
		{"wrong_secret", c.WrongSecret}, {"bad_cookie", c.BadCookie}, {"replayed", c.Replayed}, {"late_repeat", c.LateRepeat},
		{"server_full", c.NoRoom}, {"unknown_restart", c.UnknownRestart}, {"too_small", c.TooSmall},
		{"restarts_limited", c.RestartsLimited}, {"upgrades_limited", c.UpgradesLimited}, {"no_randomness", c.RandomnessFailed},
	}, yield)
}

// Refusals calls yield with the reason code and the count of every refusal, in a fixed order, zeros too.
func (c *ClientCounters) Refusals(yield func(reason string, n uint64) bool) {
	c.Malformed.refusals([]refusal{
		{"wrong_type", c.WrongType}, {"wrong_version", c.WrongVersion}, {"wrong_client_id", c.WrongClientID},
		{"wrong_session", c.WrongSession}, {"wrong_cookie", c.WrongCookie}, {"unexpected", c.Unexpected},
		{"restart_unlikely", c.RestartUnlikely},
	}, yield)
}

type refusal struct {
	reason string
	n      uint64
}

// refusals yields the malformed packets, then more.
func (m *Malformed) refusals(more []refusal, yield func(reason string, n uint64) bool) {
	for _, list := range [][]refusal{{
		{"empty", m.Empty}, {"zero_last_byte", m.ZeroLastByte}, {"wrong_magic", m.WrongMagic}, {"not_handshake", m.NotHandshake},
		{"too_short", m.TooShort}, {"unknown_type", m.UnknownType}, {"contradictory", m.Contradictory},
	}, more} {
		for _, r := range list {
			if !yield(r.reason, r.n) {
				return
			}
		}
	}
}
