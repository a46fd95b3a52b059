package netcode

// Refusals calls yield with the reason code and the count of every refusal, in a fixed order, zeros too.
func (c *ServerCounters) Refusals(yield func(reason string, n uint64) bool) {
	for _, r := range [...]struct {
		reason string
		n      uint64
	}{
		{"bad_size", c.BadSize}, {"bad_type", c.BadType}, {"bad_sequence", c.BadSequence}, {"bad_version", c.BadVersion},
		{"bad_protocol", c.BadProtocol}, {"token_expired", c.Expired}, {"bad_token", c.BadToken}, {"other_server", c.OtherServer},
		{"addr_connected", c.AddrConnected}, {"id_connected", c.IDConnected}, {"token_used", c.TokenUsed}, {"server_full", c.Full},
		{"no_mapping", c.NoMapping}, {"bad_challenge", c.BadChallenge}, {"not_bound", c.NotBound},
		{"replayed", c.Replayed}, {"not_sealed", c.NotSealed}, {"no_mapping_room", c.NoRoom},
	} {
		if !yield(r.reason, r.n) {
			return
		}
	}
}

// Refusals calls yield with the reason code and the count of every refusal, in a fixed order, zeros too.
func (c *ClientCounters) Refusals(yield func(reason string, n uint64) bool) {
	for _, r := range [...]struct {
		reason string
		n      uint64
	}{
		{"other_source", c.OtherSource}, {"bad_format", c.BadFormat}, {"unexpected", c.Unexpected},
		{"replayed", c.Replayed}, {"not_sealed", c.NotSealed},
	} {
		if !yield(r.reason, r.n) {
			return
		}
	}
}
