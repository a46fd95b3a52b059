package channel

import "github.com/bunchnet/bunchnet/bunch"

// A connection that holds packets back for a late one hands over their reliable bunches before their turn. The sequences on the
// wire are then told apart from where the channel was when packets last came in order: the late packet may bring
// copies of bunches that are as old as all that was in flight then, and what was taken early may have led the channel as far ahead.

// ahead is a channel index of which bunches were taken early, and the newest sequence that came in order.
type ahead struct {
	index uint32
	seq   int64
}

// maxAhead bounds the indices of which bunches are taken early at the same time. Others wait for their packet's turn.
const maxAhead = 64

// ReceivedEarly is ReceivedBunch for a reliable bunch of a packet whose turn hasn't come; nak leaves it for that.
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

// newestIn is the newest sequence of an index that came.
func (t *Table) newestIn(index uint32) int64 {
	if ch := t.Channel(index); ch != nil && ch.early() > 0 {
		recs := ch.rare.in.recs
		return recs[len(recs)-1].in.ChSequence
	}
	return t.inReliable(index)
}

// InTurn says that all packets that were taken early have had their turn.
func (m *Machine) InTurn() {
	if s := m.strange; s != nil {
		s.ahead = s.ahead[:0]
	}
}

// aheadOf is what is known of an index of which bunches were taken early; nil when none were.
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

// expand is the full sequence of a reliable bunch.
func (t *Table) expand(in *bunch.In, early bool) int64 {
	s := t.cfg.Protocol.Sequences()
	a := t.aheadOf(in.ChIndex)
	if a == nil {
		return s.Expand(in.WireSeq, t.inReliable(in.ChIndex))
	}
	seq := s.Expand(in.WireSeq, a.seq)
	if !early {
		a.seq = max(a.seq, seq)
	}
	return seq
}
