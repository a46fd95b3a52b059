package channel

import "github.com/bunchnet/bunchnet/bunch"

// When a large payload begins. A payload that is split needs memory at the peer from its first part to its last. Of many such payloads on many channels
// each waits with its last parts, as channels take turns, and together they may be more than the peer may hold. So both ends
// bound those that have begun:
//
//   - The sender charges the bytes of a payload to the table from its first part until it is acked. The channels whose next payload finds no room
//     wait in line, and begin in that order as others are acked. One payload may always be under way.
//   - The receiver always keeps room to join one payload to its end. While it has no more than that, packets with parts of others are refused, so that
//     they come again.

// maxBegun bounds the bytes of payloads that have begun and aren't acked: what a server of the default MaxMemory leaves to them.
const maxBegun = defaultMaxMemory / 2 / largeShare

// largeShare is the share of the memory for the peer's bunches, one part in so many, that only the parts of a payload which has begun may
// take; it is at least one payload of the largest size.
const largeShare = 4

// leastBegun is how much of payloads that are smaller than one of the largest size begins though channels take nearly all of what the peer has.
const leastBegun = 16 << 10

// largeRoom is that share in bytes.
func (t *Table) largeRoom() int {
	return max(t.cfg.MaxMemory/2/largeShare, bufferSize(bunch.MaxPayload))
}

// mostBegun is the charge up to which payloads begin. One of the largest size always may. It rises with what is acked, and falls back to that when the
// peer turns out to have less room. It is half at most of what the peer has for them besides one of the largest size, as parts may count twice there.
func (t *Table) mostBegun() int {
	least := bufferSize(bunch.MaxPayload)
	most := max(least, min(least+t.begunRoom, maxBegun, t.cfg.MaxMemory/2/largeShare))
	return max(min(most, (t.cfg.PeerMemory/2-t.opened*openCost-least)/2), leastBegun)
}

// oftenLost notes that a part was lost often.
func (t *Table) oftenLost(rec *outRec) {
	if rec.header.Partial {
		t.begunRoom = max(t.begunRoom-8*cap(rec.data), 0)
	}
}

// moreMayBegin notes that n bytes that had begun are acked. As many more may begin, but few once the peer was short, and none while it is.
func (t *Table) moreMayBegin(n int) {
	switch {
	case t.short:
		n = 0
	case t.wasShort:
		n /= slowly
	}
	t.begunRoom = min(t.begunRoom+n, maxBegun)
}

// slowly is so many bytes acked for one more.
const slowly = 8

// begin charges the payload whose parts are the sequences before end. It is false when others must be acked first.
func (t *Table) begin(ch *Channel, bytes int, end int64) bool {
	had, counted := 0, 0
	if r := ch.rare; r != nil {
		had, counted = int(r.begun), r.charge()
	}
	cost, yields := max(had, bufferSize(bytes)), ch.opensInVain()
	if !yields && t.begun > counted && t.begun-counted+cost > t.mostBegun() {
		return false
	}
	r := ch.needRare()
	r.begun, r.begunEnd, r.yields = int32(cost), end, yields
	t.begun += r.charge() - counted
	return true
}

// charge is what of begun counts.
func (r *rare) charge() int {
	if r.yields {
		return 0
	}
	return int(r.begun)
}

// yield has others begin in the place of a channel whose open the peer refuses: it holds nothing of that, and may refuse it for ever.
func (t *Table) yield(ch *Channel) {
	if r := ch.rare; r != nil && r.begun > 0 && !r.yields {
		r.yields = true
		t.begun -= int(r.begun)
		t.nextInLine()
	}
}

// yieldsNoMore counts the charge of a channel whose open is acked, whatever has begun meanwhile.
func (t *Table) yieldsNoMore(ch *Channel) {
	if r := ch.rare; r != nil && r.yields {
		r.yields = false
		t.begun += int(r.begun)
	}
}

// mayBegin reports whether the channel's oldest bunch that was never sent may be: it is no first part of a split payload, or that has begun.
func (t *Table) mayBegin(ch *Channel, rec *outRec) bool {
	if !rec.header.PartialInitial || ch.rare != nil && rec.seq < ch.rare.begunEnd {
		return true
	}
	if t.line.len() > 0 {
		return false
	}
	return t.beginAt(ch, rec)
}

// beginAt is begin for a payload whose parts are in OutRec.
func (t *Table) beginAt(ch *Channel, rec *outRec) bool {
	bytes, seq := 0, rec.seq
	for ; ; seq++ {
		part := ch.out.at(seq)
		bytes += len(part.data)
		if part.header.PartialFinal {
			break
		}
	}
	return t.begin(ch, bytes, seq+1)
}

// endBegun takes the charge back once all that has begun on the channel is acked, or the channel gone.
func (t *Table) endBegun(ch *Channel) {
	r := ch.rare
	t.begun -= r.charge()
	t.moreMayBegin(int(r.begun))
	r.begun, r.begunEnd, r.yields = 0, 0, false
	t.nextInLine()
}

// nextInLine has the channels in line begin for which there is room now, in their order.
func (t *Table) nextInLine() {
	for {
		ch, rec := t.line.first()
		if ch == nil || !t.beginAt(ch, rec) {
			return
		}
		t.line.moveTo(&t.fresh)
		ch.inLine = false
	}
}

// queue is where the channel's bunches that were never sent wait.
func (ch *Channel) queue() *turns {
	switch {
	case ch.inLine:
		return &ch.table.line
	case ch.isBlocked():
		return &ch.table.blocked
	}
	return &ch.table.fresh
}

// mayJoin reports whether there is room for one more part of a payload, which has just come. Until memory is short, everybody's are taken; then those of one
// channel, served, whose payload finds room for whatever is still to come.
func (t *Table) mayJoin(ch *Channel, in *bunch.In) bool {
	if ch == t.served || t.served == nil {
		return true
	}
	_, more := ch.joinCost(in)
	return t.held+more <= t.cfg.MaxMemory/2-t.rest()
}

// rest is how many bytes the payload of the served channel, or of the next one to be served, may still take.
func (t *Table) rest() int {
	if t.served == nil {
		return joinCost(bunch.MaxPayload)
	}
	return joinCost(bunch.MaxPayload) - int(t.served.rare.joining)
}

// joinCost is what a payload of which n bytes have come counts: at least the buffer for them, which doubles as it grows. A part in InRec counts
// as much as it will here, so that its turn needs no more memory.
func joinCost(n int) int { return min(2*n+1<<minClass, bufferSize(bunch.MaxPayload)) }

// joinCost is the bytes of the channel's payload with one more part, and what they count more than those that it has.
func (ch *Channel) joinCost(in *bunch.In) (bytes, more int) {
	bytes = (in.Bits + 7) / 8
	had := 0
	if r := ch.rare; r != nil {
		had = int(r.joining)
		if !in.PartialInitial {
			bytes += r.assembly.Len()
		}
	}
	return bytes, max(0, joinCost(bytes)-had)
}

// growAssembly makes room for one more part.
func (ch *Channel) growAssembly(in *bunch.In) {
	bytes, more := ch.joinCost(in)
	t, r := ch.table, ch.needRare()
	r.joining += int32(more)
	t.held += more
	t.joining += more
	if t.served == nil {
		t.served = ch
	}
	if a := &r.assembly; bytes > a.Cap() {
		t.cfg.Pool.Put(a.Grow(t.cfg.Pool.Get(max(bytes, 2*a.Cap()))))
	}
}

// dropAssembly gives the buffer of a joined bunch back.
func (ch *Channel) dropAssembly() {
	if ch.closed {
		return // release did
	}
	a := &ch.rare.assembly
	ch.notJoining()
	ch.table.cfg.Pool.Put(a.Reset())
	ch.dropRare()
}

// notJoining ends the count of the channel's parts.
func (ch *Channel) notJoining() {
	t, r := ch.table, ch.rare
	t.held -= int(r.joining)
	t.joining -= int(r.joining)
	r.joining = 0
	if t.served == ch {
		t.served = nil
	}
}
