package channel

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch"
)

// ReceivedPacket says that packet id of the peer's is processed in its turn: call it before ReceivedBunch for its bunches, if it has any. What is unfinished, and
// can't be finished by it or a later packet, is given up.
func (m *Machine) ReceivedPacket(id int64) {
	if m.strange != nil && len(m.strange.unfinished) > 0 {
		m.table().expireUnfinished(id)
	}
}

// ReceivedBunch handles a bunch of a received packet, with Header, PacketID and Data set. nak asks the connection to
// refuse the packet, so that the peer sends its reliable bunches again. An error means that the peer broke a rule, and
// ends the connection. The checks have Unreal 5's order, except that a duplicate is always recognized first.
func (m *Machine) ReceivedBunch(in *bunch.In) (nak bool, err error) {
	return m.table().received(in, false)
}

func (t *Table) received(in *bunch.In, early bool) (nak bool, err error) {
	t.Counters.Received++
	if in.ChIndex >= uint32(t.cfg.MaxChannels) {
		return false, fmt.Errorf("%w: %d, and MaxChannels is %d at this end", ErrBadIndex, in.ChIndex, t.cfg.MaxChannels)
	}
	if in.Reliable {
		t.Counters.ReceivedReliable++
		last := t.inReliable(in.ChIndex)
		in.ChSequence = t.expand(in, last, early)
		if in.ChSequence <= last { // perhaps of an earlier channel with this index and another name
			t.Counters.Duplicate++
			return false, nil
		}
	}
	ch := t.Channel(in.ChIndex)
	if ch != nil && ch.halfOpen() && (in.Reliable || in.Open) {
		t.Counters.HalfOpen++
		t.remove(ch, bunch.Destroyed)
		ch = nil
	}
	if ch != nil && (in.Reliable || in.Open) && in.Name != ch.typ.Name {
		if t.cfg.FirstFree && ch.openedLocally {
			return false, fmt.Errorf("%w: %v for %v; with Unreal's protocols only one end may open channels", ErrWrongType, in.Name, ch)
		}
		return false, fmt.Errorf("%w: %v for %v", ErrWrongType, in.Name, ch)
	}
	if in.HasPackageMapExports && t.conn.IsServer() {
		return false, ErrExportsFromClient
	}
	if t.closing && (t.unacked > 0 || t.hasLeft()) && in.ChIndex == 0 && in.Close && !t.closeSent() {
		t.Counters.Refused++
		return true, nil // both ends close: the peer waits until everything that goes to it has arrived
	}
	isNew := ch == nil
	if isNew {
		if ch, nak, err = t.accept(in); ch == nil {
			return nak, err
		}
	}
	if in.Reliable {
		nak, err = ch.receiveReliable(in)
	} else {
		nak, err = ch.receive(in)
	}
	if nak && ch.empty() { // its sender may use another index next, and this one would take its room
		if t.remove(ch, bunch.Destroyed); isNew {
			t.Counters.ChannelsOpened-- // so nothing has changed
			t.Counters.ChannelsClosed--
		}
	}
	return nak, err
}

// closeSent reports whether the close of channel 0 was sent.
func (t *Table) closeSent() bool {
	ch := t.Channel(0)
	return ch != nil && ch.closing
}

// Had reports whether a reliable bunch was released before: it is a duplicate.
func (m *Machine) Had(h *bunch.Header) bool {
	t := m.table()
	last := t.inReliable(h.ChIndex)
	return t.cfg.Protocol.Sequences().Expand(h.WireSeq, last) <= last
}

// halfOpen reports whether the channel consists only of a part of a temporary channel's bunch. Its opener has forgotten
// it when it uses the index again.
func (ch *Channel) halfOpen() bool {
	return !ch.openedLocally && !ch.openAcked && !ch.released && ch.early() == 0
}

// empty reports whether nothing is left of a channel of the peer's because a part was refused.
func (ch *Channel) empty() bool {
	return ch.index != 0 && !ch.closed && ch.halfOpen() && (ch.rare == nil || !ch.rare.assembly.Active())
}

func (t *Table) inReliable(index uint32) int64 {
	if s := t.slotAt(index); s != nil {
		return s.inReliable
	}
	return t.initIn
}

// accept makes the channel for the first bunch on an index. A nil channel means that the bunch is ignored; nak says
// whether its packet is refused.
func (t *Table) accept(in *bunch.In) (ch *Channel, nak bool, err error) {
	if t.controlGone && in.ChIndex == 0 {
		t.Counters.Ignored++
		return nil, false, nil
	}
	switch control := in.ChIndex == 0 && (in.Name == bunch.Control || !in.Reliable && !in.Open); {
	case !control && t.isStatic(0) && !t.controlOpen():
		if t.cfg.StrictControl && t.Channel(0) == nil && !t.controlGone { // packets after its close may have overtaken it
			return nil, false, ErrNoControl
		}
		t.Counters.Refused++
		return nil, true, nil
	case control && in.Close && !in.Open && !(in.Reliable && in.ChSequence > t.inReliable(0)+1): // otherwise its open is lost or late
		return nil, false, ErrControlClose
	}
	if !in.Reliable && !in.Open && t.ignored(in.ChIndex) {
		t.Counters.Ignored++
		t.setIgnored(in.ChIndex, !in.Close)
		return nil, false, nil
	}
	if !in.Reliable && !(in.Open && (in.Close || in.Partial)) {
		t.Counters.UnknownChannel++
		t.Counters.Refused++
		return nil, true, nil // its open is lost or late
	}
	typ := t.typeOf(in.Name)
	if typ == nil && in.ChIndex == 0 && in.Name == bunch.Control && in.Open && in.Close {
		typ = &controlType // the end of a connection that has no control channel
	}
	if typ == nil {
		t.Counters.UnknownType++
		return nil, t.ignore(in), nil
	}
	if !t.mayOpen(typ, !t.conn.IsServer()) || typ.Static && typ.Index != in.ChIndex || !typ.Static && t.isStatic(in.ChIndex) {
		t.Counters.MayNotOpen++
		return nil, t.ignore(in), nil
	}
	cost := channelCost + openRoom
	if t.slotAt(in.ChIndex) == nil {
		cost += pageCost
	}
	if s := t.slotAt(in.ChIndex); s != nil && s.gap > 0 && !t.mayFill(int(s.outReliable-s.gap)+1) {
		t.Counters.Refused++
		return nil, true, nil
	}
	if !t.fits(cost + t.strayLater()) {
		t.Counters.MemoryFull++
		t.Counters.Refused++
		return nil, true, nil
	}
	if t.outlet.AllowOpen(in) != nil || t.ended {
		t.Counters.Refused++
		return nil, true, nil
	}
	t.held += channelCost + openRoom
	ch = t.add(in.ChIndex, typ)
	ch.handlerHeld = openRoom
	return ch, false, nil
}

// controlOpen reports whether channel 0 is open. It may exist before that, with a part of its open or with later bunches
// only.
func (t *Table) controlOpen() bool {
	ch := t.Channel(0)
	return ch != nil && (ch.openedLocally || ch.openAcked)
}

// ignore drops a bunch of a channel that this end refused. Its sequence counts as received, so that the index's next
// channel continues after it. Later bunches on the channel are ignored too until it is closed: refusing their packets
// would have everything in them sent again for ever. nak is true when there is no memory for that.
func (t *Table) ignore(in *bunch.In) (nak bool) {
	if t.slotAt(in.ChIndex) == nil {
		switch {
		case in.Close && !in.Reliable: // nothing follows
			return false
		case !t.fits(pageCost) && t.cfg.RestartSequence:
			return false
		case !t.fits(pageCost):
			t.Counters.MemoryFull++
			t.Counters.Refused++
			return true
		}
	}
	s := t.slot(in.ChIndex)
	t.setIgnored(in.ChIndex, !in.Close)
	if in.Reliable && !t.cfg.RestartSequence {
		s.inReliable = max(s.inReliable, in.ChSequence)
	}
	return false
}

// receiveReliable releases in if it is the next one, and then those that waited for it. Otherwise it keeps in.
func (ch *Channel) receiveReliable(in *bunch.In) (nak bool, err error) {
	t := ch.table
	s := t.slotAt(ch.index)
	if in.ChSequence != s.inReliable+1 {
		return ch.keep(in, s.inReliable+1)
	}
	if in.Partial && !t.mayJoin(ch, in) {
		t.Counters.MemoryFull++
		t.Counters.Refused++
		return true, nil
	}
	s.inReliable++
	ch.released = true
	nak, err = ch.receive(in)
	for err == nil && ch.early() > 0 {
		rec := ch.rare.in.take(s.inReliable + 1)
		if rec == nil {
			break
		}
		s.inReliable++
		t.holdEarly(-rec.cost())
		rec.in.Data.Reset(rec.data, rec.in.Bits)
		// Its packet is acked already, so nak would have no effect.
		_, err = ch.receive(&rec.in)
		t.cfg.Pool.Put(rec.data)
		t.cfg.Pool.putEarly(rec)
		ch.dropRare()
	}
	return nak, err
}

// keep stores an early reliable bunch in InRec. Without memory for it, and for those that are missing between the others and it, its packet is refused and so sent again: where
// it took the room of those, the channel would go on by one of them a round trip.
func (ch *Channel) keep(in *bunch.In, next int64) (nak bool, err error) {
	t := ch.table
	if in.ChSequence-next >= int64(t.cfg.ReliableBuffer) {
		return false, fmt.Errorf("%w: %d after %d on %v", ErrSequenceAhead, in.ChSequence, next-1, ch)
	}
	if ch.rare != nil && ch.rare.in.has(in.ChSequence) {
		t.Counters.Duplicate++
		return false, nil
	}
	n := (in.Bits + 7) / 8
	cost := earlyBytes(in.Partial, bufferSize(n))
	missing := 0
	if ch.rare != nil {
		missing = ch.rare.in.missing(next, in.ChSequence, cost)
	}
	if !t.fitsEarly(cost + missing) {
		t.Counters.MemoryFull++
		t.Counters.Refused++
		return true, nil
	}
	t.holdEarly(cost)
	t.Counters.Early++
	rec := t.cfg.Pool.getEarly()
	rec.in, rec.data = *in, t.cfg.Pool.Get(n)
	rec.in.Name = ch.typ.Name // the same, but a text that was there before
	rec.in.Data.Reset(nil, 0) // it would keep the packet
	in.Data.ReadBitsTo(rec.data, in.Bits)
	ch.needRare().in.add(rec)
	return false, nil
}

// receive handles a bunch in its turn: a part joins the others, a whole bunch is delivered.
func (ch *Channel) receive(in *bunch.In) (nak bool, err error) {
	if !in.Partial {
		return ch.deliver(in)
	}
	if !in.Reliable && !ch.table.mayJoin(ch, in) {
		ch.table.Counters.MemoryFull++
		ch.table.Counters.Refused++
		if ch.rare != nil && ch.rare.assembly.Unreliable() {
			ch.dropAssembly() // a later part mustn't continue it without this one
		}
		return true, nil
	}
	ch.growAssembly(in)
	assembly := &ch.needRare().assembly
	progress, err := assembly.Add(in)
	if err != nil {
		return false, fmt.Errorf("%w on %v", err, ch)
	}
	switch progress {
	case bunch.Merged:
		if !in.Reliable && in.PartialInitial {
			ch.table.noteUnfinished(ch)
		}
		return false, nil
	case bunch.Refused:
		ch.table.Counters.Refused++
		if !assembly.Active() {
			ch.dropAssembly()
		}
		return true, nil
	}
	defer ch.dropAssembly()
	return ch.deliver(assembly.Take())
}

// noteUnfinished notes a channel that has the first part of an unreliable bunch.
func (t *Table) noteUnfinished(ch *Channel) {
	if t.strange == nil {
		t.strange = new(strange)
	}
	if !ch.rare.unfinished {
		ch.rare.unfinished = true
		t.strange.unfinished = append(t.strange.unfinished, ch)
	}
}

// expireUnfinished drops the unreliable bunches whose next part can't arrive any more, and temporary channels that
// consist only of these. So there are never more than two packets can begin.
func (t *Table) expireUnfinished(id int64) {
	list := t.strange.unfinished
	kept := list[:0]
	for _, ch := range list {
		if ch.rare == nil { // it is closed
			continue
		}
		ch.rare.unfinished = false
		switch assembly := &ch.rare.assembly; {
		case assembly.Expire(id) && ch.halfOpen():
			t.Counters.HalfOpen++
			t.remove(ch, bunch.Destroyed)
		case assembly.Unreliable():
			ch.rare.unfinished = true
			kept = append(kept, ch)
		case assembly.Active(): // a reliable one began
		default:
			ch.dropAssembly()
		}
	}
	clear(list[len(kept):])
	t.strange.unfinished = kept
}

// deliver opens the channel if in says so, passes in to the handler, and closes the channel if in says so.
func (ch *Channel) deliver(in *bunch.In) (nak bool, err error) {
	t := ch.table
	if in.Open {
		if ch.openedLocally && !ch.opensCross(in) {
			return false, fmt.Errorf("%w: %v", ErrAlreadyOpen, ch)
		}
		if !ch.openAcked && !ch.openedLocally {
			ch.openAcked, ch.openSent = true, true
			t.fillGap(ch) // if there is no memory for it, the game's first reliable bunch does it
			ch.Release(openRoom)
			if ch.typ.Accept != nil {
				ch.handler = ch.typ.Accept(ch)
			}
			if ch.closed {
				return false, nil // Accept ended the connection
			}
			if ch.handler == nil && ch.index != 0 {
				t.Counters.NoHandler++
			}
			err := ch.tellHandler()
			if err != nil && !errors.Is(err, ErrMemory) {
				t.conn.Fail(err, true) // our handler's fault, and not the peer's
			}
			if err != nil || ch.closed {
				return false, err
			}
			if t.openedLate(ch); ch.closed {
				return false, nil // its Finish ended the connection
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
	switch {
	case ch.handler == nil:
		t.Counters.Ignored++
	case ch.closing && ch.index != 0: // on channel 0 what the peer sent before it saw the end still counts
		nak = ch.deliverLate(in)
	case in.Bits > 0:
		t.refuses = false
		ch.handler.ReceivedBunch(ch, in)
		nak = t.refusesPacket(in)
	}
	if in.Close && !ch.closed {
		t.peerClosed = t.peerClosed || ch.index == 0
		if in.Open && ch.openedLocally { // the peer opened channel 0 only to end the connection: whatever of ours it acked there, nobody got it
			t.control = int32(ch.out.first - t.initOut - 1)
		}
		t.remove(ch, in.CloseReason)
	}
	return nak, nil
}

// refusesPacket reports whether the handler that was just given a bunch has no memory for it.
func (t *Table) refusesPacket(in *bunch.In) bool {
	if !t.refuses || in.Reliable {
		return false
	}
	t.Counters.Refused++
	return true
}

// deliverLate handles what the peer sent before it saw our close.
func (ch *Channel) deliverLate(in *bunch.In) (nak bool) {
	t := ch.table
	if h, ok := ch.handler.(LateHandler); ok && in.Bits > 0 {
		t.refuses = false
		h.ReceivedLate(ch, in)
		return t.refusesPacket(in)
	}
	t.Counters.Ignored++
	return false
}

// opensCross reports whether both ends may have opened the channel. That happens on the control channel only, when one
// end opens it just to end the connection, before the other's open has arrived.
func (ch *Channel) opensCross(in *bunch.In) bool {
	return ch.index == 0 && (in.Close || ch.closing)
}

// forget drops a closed channel once no packet in flight carries bunches of it.
func (ch *Channel) forget() {
	if ch.notes == 0 && !ch.openedLocally {
		ch.table.held -= channelCost
	}
}

// release gives the channel's buffers back.
func (ch *Channel) release() {
	t := ch.table
	p := t.cfg.Pool
	t.unacked -= ch.unacked()
	fresh := ch.firstFresh()
	ch.queue().leave(ch)
	t.noneAhead(ch)
	if ch.inTurn {
		t.refused.stale++
	}
	if ch.refused {
		t.notInVain()
	}
	for ch.out.len() > 0 {
		if ch.out.first < fresh {
			t.notWaiting(ch, ch.out.at(ch.out.first))
		}
		t.heldOut -= outCost + cap(ch.out.at(ch.out.first).data)
		ch.out.popFirst(p)
	}
	t.held -= int(ch.handlerHeld)
	ch.handlerHeld = 0
	ch.forget()
	r := ch.rare
	if r == nil {
		return
	}
	for r.in.n > 0 {
		rec := r.in.take(r.in.root.in.ChSequence)
		t.holdEarly(-rec.cost())
		p.Put(rec.data)
		p.putEarly(rec)
	}
	for _, q := range r.queue {
		p.Put(q.Data)
	}
	ch.notJoining()
	t.endBegun(ch)
	t.heldOut -= int(r.keptSent)
	ch.rare = nil
	if r.assembly.Cap() == 0 { // otherwise its handler may be using the payload
		p.putRare(r)
	}
}
