package channel

import "github.com/bunchnet/bunchnet/bunch"

// When a packet is late, the connection holds later packets back but hands over their reliable bunches at once, before their
// packets' turn. Meanwhile a short sequence on the wire is expanded relative to the channel's newest sequence when packets last came in
// order. The late packet may bring copies of bunches as old as all that was in flight then, and bunches taken early may have
// moved the channel just as far ahead.

// ahead is a channel index with bunches that were taken early, and the newest sequence that came in order.
type ahead struct {
	index uint32
	seq   int64
}

// maxAhead bounds the indices with bunches taken early at the same time. Bunches of others wait for their packet's turn.
const maxAhead = 64

// ReceivedEarly is ReceivedBunch for a reliable bunch of a packet whose turn hasn't come. nak leaves the bunch for that
// turn.
func (m *Machine) ReceivedEarly(in *bunch.In) (nak bool, err error) {
	t := m.table()
	if t.aheadOf(in.ChIndex) == nil {
		if t.strange == nil {
			t.strange = new(strange)
		}
		if len(t.strange.ahead) == maxAhead {
			return true, nil
		}
		t.strange.ahead = append(t.strange.ahead, ahead{in.ChIndex, t.newestIn(in.ChIndex)})
	}
	return t.received(in, true)
}

// maxLate is how far ahead of the newest in order a bunch of a late packet may be.
const maxLate = 1024

// ReceivedLate is ReceivedBunch for a reliable bunch of a packet that was reported lost and has arrived after all. Its ChSequence may be
// far behind the newest one. ChSequences of at least 13 bits tell an old one from a new one. With fewer bits the bunch is ignored. So is
// one that may belong to an earlier channel with the same index: with RestartSequence, and when its packet left before the peer saw this
// end close a channel. In that case the peer sends empty bunches in place of the lost ones.
func (m *Machine) ReceivedLate(in *bunch.In) (nak bool, err error) {
	t := m.table()
	if t.cfg.Protocol.Sequences() < 13 || t.cfg.RestartSequence || in.ChIndex >= uint32(t.cfg.MaxChannels) || in.ChIndex == 0 && in.Close || in.PacketID <= t.left {
		return true, nil
	}
	if last := t.inReliable(in.ChIndex); t.expand(in, last, true) > last+maxLate {
		return true, nil
	}
	return t.received(in, true)
}

// newestIn is the newest sequence received for an index.
func (t *Table) newestIn(index uint32) int64 {
	if ch := t.Channel(index); ch != nil && ch.early() > 0 {
		return ch.rare.in.newest
	}
	return t.inReliable(index)
}

// InTurn is called when all packets with bunches taken early have had their turn.
func (m *Machine) InTurn() {
	if s := m.strange; s != nil {
		s.ahead = s.ahead[:0]
	}
}

// aheadOf is the entry of an index with bunches taken early; nil when there is none.
func (t *Table) aheadOf(index uint32) *ahead {
	if t.strange == nil {
		return nil
	}
	for i := range t.strange.ahead {
		if a := &t.strange.ahead[i]; a.index == index {
			return a
		}
	}
	return nil
}

// expand is the full sequence of a reliable bunch; last is the newest one released on its index.
func (t *Table) expand(in *bunch.In, last int64, early bool) int64 {
	s := t.cfg.Protocol.Sequences()
	a := t.aheadOf(in.ChIndex)
	if a == nil {
		return s.Expand(in.WireSeq, last)
	}
	seq := s.Expand(in.WireSeq, a.seq)
	if !early {
		a.seq = max(a.seq, seq)
	}
	return seq
}
