package salted

import "github.com/bunchnet/bunchnet/netconn/internal/refusals"

// Refusals calls yield with the code and the count of each reason for refusal, in a fixed order, also for a count of
// zero.
func (c *Counters) Refusals(yield func(reason string, n uint64) bool) {
	refusals.Each(yield, []refusals.Count{
		refusals.Of("too_short", c.TooShort), refusals.Of("bad_size", c.BadSize), refusals.Of("bad_checksum", c.BadChecksum), refusals.Of("bad_type", c.BadType),
		refusals.Of("bad_padding", c.BadPadding), refusals.Of("bad_salt", c.BadSalt), refusals.Of("bad_prefix", c.BadPrefix), refusals.Of("replayed", c.Replayed),
		refusals.Of("no_session", c.NoSession), refusals.Of("unexpected", c.Unexpected), refusals.Of("server_full", c.Denied-c.TooMany), refusals.Of("too_many_from_address", c.TooMany),
	})
}
