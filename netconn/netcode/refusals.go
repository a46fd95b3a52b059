package netcode

import "github.com/bunchnet/bunchnet/netconn/internal/refusals"

// Refusals calls yield with the reason code and the count of every refusal, in a fixed order, zeros too.
func (c *ServerCounters) Refusals(yield func(reason string, n uint64) bool) {
	refusals.Each(yield, []refusals.Count{
		refusals.Of("bad_size", c.BadSize), refusals.Of("bad_type", c.BadType), refusals.Of("bad_sequence", c.BadSequence), refusals.Of("bad_version", c.BadVersion),
		refusals.Of("bad_protocol", c.BadProtocol), refusals.Of("token_expired", c.Expired), refusals.Of("bad_token", c.BadToken), refusals.Of("other_server", c.OtherServer),
		refusals.Of("addr_connected", c.AddrConnected), refusals.Of("id_connected", c.IDConnected), refusals.Of("token_used", c.TokenUsed), refusals.Of("server_full", c.Full),
		refusals.Of("no_mapping", c.NoMapping), refusals.Of("bad_challenge", c.BadChallenge), refusals.Of("not_bound", c.NotBound),
		refusals.Of("replayed", c.Replayed), refusals.Of("not_sealed", c.NotSealed), refusals.Of("no_mapping_room", c.NoRoom), refusals.Of("unexpected", c.Unexpected), refusals.Of("not_admitted", c.NotAdmitted), refusals.Of("waited", c.Waited),
	})
}

// Refusals calls yield with the reason code and the count of every refusal, in a fixed order, zeros too.
func (c *ClientCounters) Refusals(yield func(reason string, n uint64) bool) {
	refusals.Each(yield, []refusals.Count{
		refusals.Of("other_source", c.OtherSource), refusals.Of("bad_format", c.BadFormat), refusals.Of("unexpected", c.Unexpected),
		refusals.Of("replayed", c.Replayed), refusals.Of("not_sealed", c.NotSealed),
	})
}
