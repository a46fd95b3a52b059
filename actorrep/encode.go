package actorrep

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// encodeRecord writes one view's record.
func (p *Peer) encodeRecord(k *worker, w *bitio.Writer, v *view, prev uint32) record {
	c := v.b.class
	m := v.dirty & v.allowed
	start := w.Len()
	writeID(w, v.id-prev-1)
	w.WriteBool(len(v.mentions) > 0)
	if len(v.mentions) > 0 {
		writeMentions(w, v)
	}
	writeMask(w, m, &k.lastOf[c.id], len(c.layout.Units))
	r := record{v: v, mask: m, count: v.b.rep.count}
	c.layout.Keys(v.b.rep.shadow, r.keys[:])
	base := layout.Base{Keys: v.keys}
	if m&c.layout.Deltas != 0 {
		p.chooseBaseline(w, v, m, &base)
	}
	head := w.Len() - start
	p.encodeValues(k, w, v, m, &base)
	if w.Err() == nil {
		p.batch.stats.Updates++
		p.overhead.records += uint64(head - p.accountMentions(v))
	}
	return r
}

// accountMentions adds the calls that rode with a record to their rows.
func (p *Peer) accountMentions(v *view) (sum int) {
	for i, c := range v.mentions {
		bits := c.size()
		p.rowBits[v.b.class.firstRow+len(v.b.class.layout.Units)+c.rpc] += uint64(bits)
		sum += bits
		v.mentions[i] = nil
	}
	p.batch.stats.CallsSent += uint64(len(v.mentions))
	v.mentions = v.mentions[:0]
	return sum
}

func writeID(w *bitio.Writer, gap uint32) {
	if gap == 0 {
		w.WriteBool(true)
		return
	}
	w.WriteBool(false)
	for {
		w.WriteBits(uint64(gap), idGroup)
		gap >>= idGroup
		w.WriteBool(gap != 0)
		if gap == 0 {
			return
		}
	}
}

func readID(r *bitio.Reader) (gap uint32) {
	if r.ReadBool() {
		return 0
	}
	for shift := 0; ; shift += idGroup {
		gap |= uint32(r.ReadBits(idGroup)) << shift
		if !r.ReadBool() || shift > 28 {
			return gap
		}
	}
}

func writeMask(w *bitio.Writer, m layout.Mask, last *layout.Mask, units int) {
	if units > rawMask {
		w.WriteBool(m == *last)
		if m == *last {
			return
		}
		*last = m
	}
	w.WriteBits(m, units)
}

func readMask(r *bitio.Reader, last *layout.Mask, units int) layout.Mask {
	if units > rawMask {
		if r.ReadBool() {
			return *last
		}
		*last = r.ReadBits(units)
		return *last
	}
	return r.ReadBits(units)
}

// maxBaselineAge is how many packets old a baseline may be: its number has 8 bits.
const maxBaselineAge = 200

// chooseBaseline finds what the client is known to have, and says in which packet it came.
func (p *Peer) chooseBaseline(w *bitio.Writer, v *view, m layout.Mask, base *layout.Base) {
	l := v.b.class.layout
	known := v.known & m & l.Deltas
	age := p.newest - v.packet
	if known != 0 && v.packet >= 0 && age < maxBaselineAge && p.out.nextPacket()-v.packet < maxBaselineAge {
		base.Words = v.b.rep.snaps.at(v.count)
	}
	switch {
	case base.Words == nil:
		w.WriteBits(0, 2)
		return
	case age == 0:
		w.WriteBits(1, 1)
	case age == 1:
		w.WriteBits(0b010, 3)
	default:
		w.WriteBits(0b110, 3)
		w.WriteBits(uint64(v.packet), packetBits)
	}
	base.Mask = known
	p.batch.stats.Deltas++
}

// encodeValues writes the units of m, or copies them when another connection had the same.
func (p *Peer) encodeValues(k *worker, w *bitio.Writer, v *view, m layout.Mask, base *layout.Base) {
	l := v.b.class.layout
	if m&l.Fasts != 0 {
		p.encodeFresh(w, v, m, base)
		return
	}
	for i := k.cache[v.b]; i != 0; i = k.entries[i].next {
		e := &k.entries[i]
		if e.mask == m && e.base == base.Mask && (base.Mask == 0 || e.count == v.count) {
			w.WriteBitsFrom(k.buf, e.from, e.bits)
			if w.Err() == nil {
				p.account(v.b.class, m, k.sizes[e.sizes:])
			}
			p.batch.stats.SharedBits += uint64(e.bits)
			return
		}
	}
	e := encoded{mask: m, base: base.Mask, count: v.count, from: k.arena.Len(), sizes: len(k.sizes), next: k.cache[v.b]}
	for rest := m; rest != 0; rest &= rest - 1 {
		at := k.arena.Len()
		l.WriteUnit(&k.arena, v.b.rep.shadow, bits.TrailingZeros64(rest), base)
		k.sizes = append(k.sizes, uint16(min(k.arena.Len()-at, 1<<16-1)))
	}
	if k.arena.Err() != nil { // full: whatever follows is encoded each time
		k.sizes = k.sizes[:e.sizes]
		p.encodeFresh(w, v, m, base)
		return
	}
	e.bits = k.arena.Len() - e.from
	k.entries = append(k.entries, e)
	k.cache[v.b] = int32(len(k.entries) - 1)
	w.WriteBitsFrom(k.buf, e.from, e.bits)
	if w.Err() == nil {
		p.account(v.b.class, m, k.sizes[e.sizes:])
	}
}

func (p *Peer) encodeFresh(w *bitio.Writer, v *view, m layout.Mask, base *layout.Base) {
	var sizes [layout.MaxUnits]uint16
	n := 0
	for rest := m; rest != 0; rest &= rest - 1 {
		at := w.Len()
		v.b.class.layout.WriteUnit(w, v.b.rep.shadow, bits.TrailingZeros64(rest), base)
		sizes[n] = uint16(min(w.Len()-at, 1<<16-1))
		n++
	}
	if w.Err() == nil {
		p.account(v.b.class, m, sizes[:n])
	}
}

// account adds the units' sizes to the connection's rows.
func (p *Peer) account(c *class, m layout.Mask, sizes []uint16) {
	row := p.rowBits[c.firstRow:]
	for n := 0; m != 0; m, n = m&(m-1), n+1 {
		row[bits.TrailingZeros64(m)] += uint64(sizes[n])
	}
}

// write sends the batch.
func (p *Peer) write() {
	if !p.ready {
		return
	}
	t, c := &p.batch, &p.world.Counters
	for _, ch := range t.chunks {
		packet, ok := p.out.chunk(t.buf[ch.from:], ch.bits)
		records := t.records[ch.first : ch.first+ch.n]
		for _, r := range records {
			switch {
			case !ok:
				r.v.changed(r.mask) // stays to be sent
			case r.mask != 0:
				r.packet = packet
				p.sent.push(r)
			}
		}
		if ok {
			c.Bunches++
			c.UpdateBits += uint64(ch.bits)
		}
	}
	clear(t.records)
	for _, v := range t.large {
		p.writeLarge(v)
	}
	clear(t.large)
	c.Updates += t.stats.Updates
	c.Deltas += t.stats.Deltas
	c.Saturated += t.stats.Saturated
	c.SharedBits += t.stats.SharedBits
	t.stats = Counters{}
}

// writeLarge sends reliably, on the actor's own channel, what is larger than a packet.
func (p *Peer) writeLarge(v *view) {
	m := v.dirty & v.allowed
	if v.state != open || m == 0 {
		return
	}
	var w bitio.Writer
	w.Reset(p.world.scratch)
	p.writeProps(&w, v, m)
	if w.Err() != nil || !p.out.reliable(v, &w) {
		v.reason = ReasonNoRoom
		return // stays dirty
	}
	v.dirty &^= m
	p.world.Counters.Large++
}

// Messages on an actor's channel after its opening bunch, any number in a bunch.
const (
	msgProps   = iota // 32 frame | a bit a unit | values
	msgCall           // see package doc
	msgRole           // 1 owner | 1 autonomous
	msgTornOff        // nothing
	msgBits    = 2
)

// writeProps writes values as a message on the actor's own channel.
func (p *Peer) writeProps(w *bitio.Writer, v *view, m layout.Mask) {
	l := v.b.class.layout
	w.WriteBits(msgProps, msgBits)
	w.WriteUint32(p.world.frame)
	w.WriteBits(m, len(l.Units))
	p.encodeFresh(w, v, m, &layout.Base{Keys: v.keys})
}
