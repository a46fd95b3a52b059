package channel

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// ReceivedBunch takes a bunch from a packet, with Header, PacketID and Data set.
// nak asks the connection to refuse the packet, so that the peer sends again what
// was reliable in it. An error is a broken rule that ends the connection; the
// order of the checks is Unreal 5's, but that a duplicate is one whatever else is wrong with it.
func (t *Table) ReceivedBunch(in *bunch.In) (nak bool, err error) {
	t.Counters.Received++
	if in.ChIndex >= uint32(t.cfg.MaxChannels) {
		return false, fmt.Errorf("%w: %d", ErrBadIndex, in.ChIndex)
	}
	if in.Reliable {
		t.Counters.ReceivedReliable++
		in.ChSequence = t.expand(in)
		if in.ChSequence <= t.inReliable(in.ChIndex) { // maybe of an earlier channel with this index, and another name
			t.Counters.Duplicate++
			return false, nil
		}
	}
	ch := t.Channel(in.ChIndex)
	if ch != nil && (in.Reliable || in.Open) && in.Name != ch.typ.Name {
		return false, fmt.Errorf("%w: %v for %v", ErrWrongType, in.Name, ch)
	}
	if in.HasPackageMapExports && t.conn.IsServer() {
		return false, ErrExportsFromClient
	}
	if ch == nil {
		if ch, nak, err = t.accept(in); ch == nil {
			return nak, err
		}
	}
	if !in.Reliable {
		return ch.receive(in)
	}
	return ch.receiveReliable(in)
}

func (t *Table) inReliable(index uint32) int64 {
	if page := int(index / pageSize); page < len(t.pages) && t.pages[page] != nil {
		return t.pages[page][index%pageSize].inReliable
	}
	return t.initIn
}

func (t *Table) expand(in *bunch.In) int64 {
	return seqnum.Channel.Expand(in.WireSeq, t.inReliable(in.ChIndex))
}

// accept makes the channel that the first bunch on an index is for. A nil channel
// means the bunch is ignored, with the packet refused or not.
func (t *Table) accept(in *bunch.In) (ch *Channel, nak bool, err error) {
	switch control := in.ChIndex == 0 && (in.Name == bunch.Control || !in.Reliable && !in.Open); {
	case !control && t.Channel(0) == nil && t.isStatic(0):
		if t.cfg.StrictControl {
			return nil, false, ErrNoControl
		}
		t.Counters.Refused++
		return nil, true, nil
	case control && in.Close && !in.Open:
		return nil, false, ErrControlClose
	}
	if !in.Reliable && !(in.Open && (in.Close || in.Partial)) {
		t.Counters.UnknownChannel++
		t.Counters.Refused++
		return nil, true, nil // its open is lost or late
	}
	typ := t.typeOf(in.Name)
	if typ == nil {
		t.Counters.UnknownType++
		return nil, false, nil
	}
	if !t.mayOpen(typ, !t.conn.IsServer()) || typ.Static && typ.Index != in.ChIndex || !typ.Static && t.isStatic(in.ChIndex) {
		t.Counters.MayNotOpen++
		return nil, false, nil
	}
	if err := t.conn.AllowOpen(in); err != nil {
		if t.cfg.StrictControl {
			return nil, false, err
		}
		t.Counters.Refused++
		return nil, true, nil
	}
	return t.add(in.ChIndex, typ), false, nil
}

// receiveReliable releases in if it is next, and what waited behind it; an early
// one is kept.
func (ch *Channel) receiveReliable(in *bunch.In) (nak bool, err error) {
	t := ch.table
	s := t.slot(ch.index)
	if in.ChSequence != s.inReliable+1 {
		return false, ch.keep(in, s.inReliable+1)
	}
	s.inReliable++
	nak, err = ch.receive(in)
	for err == nil && !ch.closed && ch.in.n > 0 {
		rec := ch.in.slot(s.inReliable+1, s.inReliable+1)
		if !rec.held || rec.in.ChSequence != s.inReliable+1 {
			break
		}
		s.inReliable++
		early, data := &t.early, rec.data
		*early = rec.in
		*rec = inRec{}
		ch.in.n--
		early.Data.Reset(data, early.Bits)
		// The packet that brought it is acked already, so a refusal changes nothing.
		_, err = ch.receive(early)
		t.cfg.Pool.Put(data)
	}
	return nak, err
}

// keep puts a reliable bunch that came before its turn into InRec.
func (ch *Channel) keep(in *bunch.In, next int64) error {
	t := ch.table
	if in.ChSequence-next >= int64(t.cfg.ReliableBuffer) {
		return fmt.Errorf("%w: %d after %d on %v", ErrSequenceAhead, in.ChSequence, next-1, ch)
	}
	rec := ch.in.slot(in.ChSequence, next)
	if rec.held {
		t.Counters.Duplicate++
		return nil
	}
	t.Counters.Early++
	*rec = inRec{in: *in, held: true, data: t.cfg.Pool.Get((in.Bits + 7) / 8)}
	in.Data.ReadBitsTo(rec.data, in.Bits)
	ch.in.n++
	return nil
}

// receive takes a bunch whose turn it is: a part joins the others, a whole one is delivered.
func (ch *Channel) receive(in *bunch.In) (nak bool, err error) {
	t := ch.table
	if in.Partial {
		if need := ch.assembly.Len() + (in.Bits+7)/8; need > ch.assembly.Cap() && need <= bunch.MaxPayload {
			t.cfg.Pool.Put(ch.assembly.Grow(t.cfg.Pool.Get(max(need, 2*ch.assembly.Cap()))))
		}
		progress, err := ch.assembly.Add(in)
		if err != nil {
			return false, fmt.Errorf("%w on %v", err, ch)
		}
		switch progress {
		case bunch.Merged:
			return false, nil
		case bunch.Refused:
			t.Counters.Refused++
			return true, nil
		}
		defer func() { t.cfg.Pool.Put(ch.assembly.Reset()) }()
		in = ch.assembly.Take()
	}
	return ch.deliver(in)
}

// deliver opens the channel if in says so, hands in to the handler, and closes it.
func (ch *Channel) deliver(in *bunch.In) (nak bool, err error) {
	t := ch.table
	if in.Open {
		if ch.openedLocally {
			return false, fmt.Errorf("%w: %v", ErrAlreadyOpen, ch)
		}
		if !ch.openAcked {
			ch.openAcked, ch.openSent = true, true
			t.fillGap(ch)
			if ch.typ.Accept != nil {
				ch.handler = ch.typ.Accept(ch)
			}
		}
	}
	if !ch.openedLocally && !ch.openAcked {
		if in.Reliable && in.Bits == 0 && !in.Close {
			return false, nil // it fills a gap
		}
		if in.Reliable {
			return false, fmt.Errorf("%w: %v", ErrReliableNotOpen, ch)
		}
		t.Counters.UnknownChannel++
		t.Counters.Refused++
		return true, nil
	}
	ch.peerPaused = in.ReplicationPaused
	if ch.closing || ch.handler == nil {
		t.Counters.Ignored++
	} else if in.Bits > 0 {
		ch.handler.ReceivedBunch(ch, in)
	}
	if in.Close && !ch.closed {
		t.remove(ch, in.CloseReason)
	}
	return false, nil
}

// release gives the channel's buffers back.
func (ch *Channel) release(cfg *Config) {
	for ; ch.out.first < ch.out.next; ch.out.first++ {
		cfg.Pool.Put(ch.out.at(ch.out.first).Data)
	}
	for i := range ch.in.slots {
		cfg.Pool.Put(ch.in.slots[i].data)
	}
	for _, q := range ch.queue {
		cfg.Pool.Put(q.data)
	}
	ch.out, ch.in, ch.queue = outRecs{}, inRecs{}, nil
}
