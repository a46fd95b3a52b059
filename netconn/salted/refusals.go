package salted

// Refusals calls yield with the reason code and the count of every refusal, in a fixed order, zeros too.
func (c *Counters) Refusals(yield func(reason string, n uint64) bool) {
	for _, r := range [...]struct {
		reason string
		n      uint64
	}{
		{"too_short", c.TooShort}, {"bad_size", c.BadSize}, {"bad_checksum", c.BadChecksum}, {"bad_type", c.BadType},
		{"bad_padding", c.BadPadding}, {"bad_salt", c.BadSalt}, {"bad_prefix", c.BadPrefix}, {"replayed", c.Replayed},
		{"no_session", c.NoSession}, {"unexpected", c.Unexpected}, {"server_full", c.Denied - c.TooMany}, {"too_many_from_address", c.TooMany},
	} {
		if !yield(r.reason, r.n) {
			return
		}
	}
}
