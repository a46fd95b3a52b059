package actorrep

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// encodeRecord writes one view's record and fills in r.
func (p *Peer) encodeRecord(k *worker, w *bitio.Writer, v *view, prev uint32, r *record) {
	c := v.b.class
	m := v.dirty & v.allowed
	if v.flags&inTurns != 0 {
		m = 0 // calls only
	}
	start := w.Len()
	*r = record{v: v, mask: m, due: m, count: v.b.rep.count, at: p.world.now, frame: p.world.frame, deltas: m&c.layout.Deltas != 0}
	base := layout.Base{}
	if v.flags&versioned != 0 {
		c.layout.Keys(v.b.rep.shadow, r.keys[:])
		base = v.versions.base()
	}
	e, encoded := p.values(k, v, m, &base)
	writeHead(k, w, v, m, v.id-prev, e)
	head := w.Len() - start
	if encoded {
		p.copyValues(k, w, v, e)
	} else {
		p.encodeFresh(w, v, m, &base)
	}
	if w.Err() == nil {
		p.batch.stats.updates++
		if e.path.Age != 0 {
			p.batch.stats.deltas++
		}
		p.overhead.records += uint64(head - p.accountMentions(v))
	}
}

// writeHead writes what precedes the values of a record.
func writeHead(k *worker, w *bitio.Writer, v *view, m layout.Mask, gap uint32, e *encoded) {
	l, st := v.b.class.layout, &k.state
	last := &k.lastOf[v.b.class.id]
	plain := v.flags&mentioning == 0 && m == *last
	if m&l.Deltas != 0 {
		plain = plain && e.path == st.Paths.Last && e.predicted == (e.path.Gap != 0)
	}
	if wire.WriteID(w, gap, &st.Gap, plain); plain {
		return
	}
	w.WriteBool(v.flags&mentioning != 0)
	if v.flags&mentioning != 0 {
		writeMentions(w, v)
	}
	wire.WriteMask(w, m, last, len(l.Units))
	if m&l.Deltas == 0 {
		return
	}
	if st.Paths.Write(w, e.path); e.path.Gap != 0 {
		w.WriteBool(e.predicted)
	}
}

// accountMentions counts the calls that were sent with a record.
func (p *Peer) accountMentions(v *view) (sum int) {
	if v.flags&mentioning == 0 {
		return 0
	}
	for _, c := range *v.mentions {
		bits := c.size()
		p.accountCall(v.b.class, c.rpc, bits)
		sum += bits
	}
	p.batch.stats.calls += uint64(len(*v.mentions))
	if p.world.observer != nil {
		for range *v.mentions {
			p.batch.saidBy = append(p.batch.saidBy, v)
		}
	}
	p.batch.said = append(p.batch.said, *v.mentions...)
	clear(*v.mentions)
	*v.mentions = (*v.mentions)[:0]
	v.flags &^= mentioning
	return sum
}

// values encodes the units of m into the arena, or finds the encoding made for another connection. It returns false when
// the caller must encode into the record itself: because no other connection can use the encoding, or because the arena
// is full.
func (p *Peer) values(k *worker, v *view, m layout.Mask, base *layout.Base) (e *encoded, ok bool) {
	l, rep := v.b.class.layout, v.b.rep
	e = &k.alone
	*e = encoded{mask: m}
	if m&l.Deltas != 0 {
		e.basis = v.basis(p.world.frame, m)
	}
	shared := m&(l.Fasts|l.Groups) == 0 && len(rep.views) > 1
	if shared {
		for i := k.first(v.b); i != 0; i = k.entries[i].next {
			if known := &k.entries[i]; known.mask == m && known.basis == e.basis {
				return known, true
			}
		}
	}
	base.Past = &k.past
	if e.path = e.basis.path(p.world.frame, rep.snaps, &k.past); e.path.Gap != 0 {
		if shared {
			for i := k.first(v.b); i != 0; i = k.entries[i].next {
				if known := &k.entries[i]; known.mask == m && known.sameAlong(e) {
					return known, true
				}
			}
		}
		e.predicted = l.Predict(rep.shadow, &k.past)
	}
	if !shared {
		return e, false
	}
	e.from, e.sizes, e.next = k.arena.Len(), len(k.sizes), k.first(v.b)
	k.sizes = v.writeUnits(&k.arena, m, base, k.sizes)
	if k.arena.Err() != nil { // full: whatever follows is encoded each time
		k.sizes = k.sizes[:e.sizes]
		return e, false
	}
	e.bits = k.arena.Len() - e.from
	k.entries = append(k.entries, *e)
	k.cache[v.b.slot] = cached{k.frame, int32(len(k.entries) - 1)}
	return &k.entries[len(k.entries)-1], true
}

// sameAlong reports whether two encodings of an actor's same units follow the same path. Its age says which baseline it
// starts from, and what is known of that and the path which units are predicted.
func (e *encoded) sameAlong(other *encoded) bool {
	return e.known == other.known && e.path == other.path
}

func (p *Peer) copyValues(k *worker, w *bitio.Writer, v *view, e *encoded) {
	w.WriteBitsFrom(k.buf, e.from, e.bits)
	if w.Err() == nil {
		p.batch.stats.sharedBits += uint64(e.bits)
		p.account(v.b.class, e.mask, k.sizes[e.sizes:])
	}
}

// encodeFresh writes the units of m into the record itself.
func (p *Peer) encodeFresh(w *bitio.Writer, v *view, m layout.Mask, base *layout.Base) {
	var room [layout.MaxUnits]uint16
	sizes := v.writeUnits(w, m, base, room[:0])
	if w.Err() == nil {
		p.account(v.b.class, m, sizes)
	}
}

// writeUnits writes the units of m and appends how many bits each took.
func (v *view) writeUnits(w *bitio.Writer, m layout.Mask, base *layout.Base, sizes []uint16) []uint16 {
	l, shadow := v.b.class.layout, v.b.rep.shadow
	for ; m != 0; m &= m - 1 {
		at := w.Len()
		l.WriteUnit(w, shadow, bits.TrailingZeros64(m), base)
		sizes = append(sizes, uint16(min(w.Len()-at, 1<<16-1)))
	}
	return sizes
}

// account adds the units' sizes to the connection's attribution.
func (p *Peer) account(c *class, m layout.Mask, sizes []uint16) {
	row := p.rowBits[c.firstRow:]
	for n := 0; m != 0; m, n = m&(m-1), n+1 {
		row[bits.TrailingZeros64(m)] += uint64(sizes[n])
	}
}

// write sends what gather has made.
func (p *Peer) write() {
	if !p.ready || p.idle {
		return
	}
	t, c := &p.turns, &p.world.Counters
	starved, sent := p.batch.stats.saturated > 0, c.UpdateBits
	if p.gathered {
		p.writeBatch()
	}
	t.had[updates] = int(c.UpdateBits - sent)
	t.short[updates] = starved && (t.had[updates] > 0 || p.out.budget() <= 0)
	p.serveRest()
	c.Delayed += uint64(len(p.opening) - p.holding)
	p.out.end()
}

func (p *Peer) writeBatch() {
	t, c := &p.batch, &p.world.Counters
	for _, ch := range t.chunks {
		packet, ok := p.out.chunk(t.buf[ch.from:], ch.bits)
		if !ok { // it and those behind it stay to be sent
			p.sent.unsent(ch.first)
			break
		}
		p.sent.sent(packet, ch.end)
		if p.world.observer != nil {
			p.tellSent(packet, ch)
		}
		c.Bunches++
		c.UpdateBits += uint64(ch.bits)
	}
	p.peaks.inFlight = max(p.peaks.inFlight, int(p.sent.tail-p.sent.head))
	t.said, t.told = p.world.unheld.dropFirst(t.said, len(t.said)), 0
	clear(t.saidBy)
	t.saidBy, t.observed = t.saidBy[:0], t.observed[:0]
	for _, v := range t.large {
		if m := v.dirty & v.allowed; m == 0 || v.flags&inTurns != 0 {
			v.dropMentions() // there was nothing else to be too large
		} else {
			v.rest, v.reason = m, ReasonStarved
			v.await()
		}
	}
	clear(t.large)
	t.buf, t.chunks, t.large = t.buf[:0], t.chunks[:0], t.large[:0]
	c.Updates += t.stats.updates
	c.Deltas += t.stats.deltas
	c.Saturated += t.stats.saturated
	c.SharedBits += t.stats.sharedBits
	c.CallsSent += t.stats.calls
	t.stats = batchStats{}
}

// sendLarge sends reliably, on the actor's own channel, changed units of *units, as far as the channel has room. When paced it stops at the budget. It reports whether
// none is left.
func (v *view) sendLarge(units *layout.Mask, paced bool) bool {
	p := v.peer
	for {
		m := *units & v.dirty & v.allowed
		if v.state != open {
			return true
		}
		if m == 0 {
			v.reason = ReasonSent
			return true
		}
		if paced && p.out.budget() <= 0 {
			v.reason = ReasonStarved
			return false
		}
		w, most := p.world.message(), p.most(p.out.room(v))
		several := most
		if paced {
			several = p.paced(most)
		}
		part := p.writeSome(w, v, m, most, several)
		if part == 0 && v.giveUp(w, m) != 0 {
			continue
		}
		if part == 0 || !p.out.reliable(v, w, false, part) {
			v.reason = ReasonNoRoom
			return false // the rest stays dirty
		}
		*units &^= part
		v.tell(part)
		v.promise(part)
		p.sent.settle(v, part)
		v.total += uint64(w.Len())
		p.world.Counters.Large++
	}
}

// writeProps writes values as a message on the actor's own channel.
func (p *Peer) writeProps(w *bitio.Writer, v *view, m layout.Mask) {
	p.writePropsHead(w, v, m)
	base := v.versions.base()
	p.encodeFresh(w, v, m, &base)
}

func (p *Peer) writePropsHead(w *bitio.Writer, v *view, m layout.Mask) {
	w.WriteBits(wire.Props, wire.KindBits)
	w.WriteUint32(p.world.frame)
	w.WriteBits(m, len(v.b.class.layout.Units))
}
