package actorrep

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// chunkState is what records of a chunk share with those before them.
type chunkState struct {
	gap          uint32 // between the last two ids
	base, before int64  // packets of the common baselines; -1 none yet
}

var newChunk = chunkState{gap: 1, base: -1, before: -1}

// encodeRecord writes one view's record.
func (p *Peer) encodeRecord(k *worker, w *bitio.Writer, v *view, prev uint32) record {
	c := v.b.class
	m := v.dirty & v.allowed
	start := w.Len()
	writeID(w, v.id-prev, &k.state.gap)
	w.WriteBool(v.flags&mentioning != 0)
	if v.flags&mentioning != 0 {
		writeMentions(w, v)
	}
	writeMask(w, m, &k.lastOf[c.id], len(c.layout.Units))
	r := record{v: v, mask: m, due: m, count: v.b.rep.count, frame: p.world.frame}
	c.layout.Keys(v.b.rep.shadow, r.keys[:])
	base := v.versions.base()
	if m&c.layout.Deltas != 0 {
		p.chooseBaseline(k, w, v, m, &base)
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
	if v.flags&mentioning == 0 {
		return 0
	}
	for _, c := range v.mentions {
		bits := c.size()
		p.accountCall(v.b.class, c.rpc, bits)
		sum += bits
	}
	p.batch.stats.CallsSent += uint64(len(v.mentions))
	p.batch.said = append(p.batch.said, v.mentions...)
	clear(v.mentions)
	v.mentions = v.mentions[:0]
	v.flags &^= mentioning
	return sum
}

// writeID writes how far an id is from the last.
func writeID(w *bitio.Writer, gap uint32, last *uint32) {
	w.WriteBool(gap == *last)
	if gap == *last {
		return
	}
	for *last = gap; ; {
		w.WriteBits(uint64(gap), idGroup)
		gap >>= idGroup
		w.WriteBool(gap != 0)
		if gap == 0 {
			return
		}
	}
}

func readID(r *bitio.Reader, last *uint32) uint32 {
	if r.ReadBool() {
		return *last
	}
	gap := uint32(0)
	for shift := 0; ; shift += idGroup {
		gap |= uint32(r.ReadBits(idGroup)) << shift
		if !r.ReadBool() || shift > 28 {
			*last = gap
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
func (p *Peer) chooseBaseline(k *worker, w *bitio.Writer, v *view, m layout.Mask, base *layout.Base) {
	known := v.base.mask & m & v.b.class.layout.Deltas
	if known != 0 && p.out.nextPacket()-v.base.packet < maxBaselineAge {
		base.Words = v.b.rep.snaps.at(v.base.count)
	}
	if base.Words == nil {
		w.WriteBits(0, 2)
		return
	}
	st := &k.state
	if st.base < 0 {
		st.base = v.base.packet
	}
	switch v.base.packet {
	case st.base:
		w.WriteBits(1, 1)
	case st.base + 1:
		w.WriteBits(0b010, 3)
	default:
		w.WriteBits(0b110, 3)
		w.WriteBits(uint64(v.base.packet), packetBits)
	}
	base.Mask = known
	p.batch.stats.Deltas++
}

// path is two baselines from which an actor's numbers may be extrapolated.
type path struct {
	words    []uint64 // of the older one; nil for none
	mask     layout.Mask
	count    int64
	num, den int32
}

// findPath looks whether the client has a second, older record of the actor that the chunk names.
func (p *Peer) findPath(k *worker, v *view, base *layout.Base) (t path) {
	t.count = -1
	mask := base.Mask & v.before.mask
	num, den := p.world.frame-v.base.frame, v.base.frame-v.before.frame
	if mask == 0 || den < 1 || den > layout.MaxExtrapolation || num > layout.MaxExtrapolation || p.out.nextPacket()-v.before.packet >= maxBaselineAge {
		return t
	}
	words := v.b.rep.snaps.at(v.before.count)
	if words == nil {
		return t
	}
	if k.state.before < 0 {
		k.state.before = v.before.packet
	}
	if k.state.before != v.before.packet {
		return t
	}
	return path{words, mask, v.before.count, int32(num), int32(den)}
}

// encodeValues writes the units of m, or copies them when another connection had the same. Behind a baseline
// stands a bit that says whether it is extrapolated.
func (p *Peer) encodeValues(k *worker, w *bitio.Writer, v *view, m layout.Mask, base *layout.Base) {
	var t path
	if base.Mask != 0 {
		t = p.findPath(k, v, base)
	}
	key := encodedKey{m, base.Mask, t.mask, 0, t.count, t.num, t.den}
	if base.Mask != 0 {
		key.count = v.base.count
	}
	if m&(v.b.class.layout.Fasts|v.b.class.layout.Groups) == 0 {
		for i := k.first(v.b); i != 0; i = k.entries[i].next {
			if e := &k.entries[i]; e.encodedKey == key {
				p.copyValues(k, w, v, e)
				p.batch.stats.SharedBits += uint64(e.bits)
				return
			}
		}
	}
	from := k.arena.Len()
	extrapolated := p.extrapolate(k, v, m, base, &t)
	if base.Mask != 0 {
		k.arena.WriteBool(extrapolated)
	}
	e := encoded{encodedKey: key, from: from, sizes: len(k.sizes), next: k.first(v.b)}
	k.sizes = v.writeUnits(&k.arena, m, base, k.sizes)
	if k.arena.Err() != nil { // full: whatever follows is encoded each time
		k.sizes = k.sizes[:e.sizes]
		if base.Mask != 0 {
			w.WriteBool(extrapolated)
		}
		p.encodeFresh(w, v, m, base)
		return
	}
	e.bits = k.arena.Len() - from
	if m&(v.b.class.layout.Fasts|v.b.class.layout.Groups) == 0 {
		k.entries = append(k.entries, e)
		k.cache[v.b.slot] = cached{k.frame, int32(len(k.entries) - 1)}
	}
	p.copyValues(k, w, v, &e)
}

func (p *Peer) copyValues(k *worker, w *bitio.Writer, v *view, e *encoded) {
	w.WriteBitsFrom(k.buf, e.from, e.bits)
	if w.Err() == nil {
		p.account(v.b.class, e.mask, k.sizes[e.sizes:])
	}
}

// extrapolate moves the baseline along its path, if that brings it nearer.
func (p *Peer) extrapolate(k *worker, v *view, m layout.Mask, base *layout.Base, t *path) bool {
	if t.words == nil {
		return false
	}
	if cap(k.guess) < len(base.Words) {
		k.guess = make([]uint64, len(base.Words))
	}
	guess := k.guess[:len(base.Words)]
	l := v.b.class.layout
	if !l.Extrapolate(guess, v.b.rep.shadow, t.mask, base.Mask&^t.mask, base.Words, t.words, int64(t.num), int64(t.den)) {
		return false
	}
	base.Words = guess
	return true
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
	for ; m != 0; m &= m - 1 {
		at := w.Len()
		v.b.class.layout.WriteUnit(w, v.b.rep.shadow, bits.TrailingZeros64(m), base)
		sizes = append(sizes, uint16(min(w.Len()-at, 1<<16-1)))
	}
	return sizes
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
	if !p.ready || p.idle {
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
	t.said = p.world.unheld.dropFirst(t.said, len(t.said))
	for _, v := range t.large {
		p.writeLarge(v, true)
	}
	clear(t.large)
	p.finishOpenings()
	c.Updates += t.stats.Updates
	c.Deltas += t.stats.Deltas
	c.Saturated += t.stats.Saturated
	c.SharedBits += t.stats.SharedBits
	t.stats = Counters{}
	p.out.end()
}

// writeLarge sends reliably, on the actor's own channel, what is larger than a packet; paced as bandwidth allows.
func (p *Peer) writeLarge(v *view, paced bool) {
	m := v.dirty & v.allowed
	if v.state != open || m == 0 {
		return
	}
	for m != 0 {
		w := p.world.message()
		part := p.writeSome(w, v, m)
		if part == 0 || !p.out.reliable(v, w, false) {
			v.reason = ReasonNoRoom
			return // the rest stays dirty
		}
		v.tell(part)
		v.promise(part)
		p.world.Counters.Large++
		if m &^= part; paced && p.out.budget() <= 0 {
			return // later
		}
	}
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
	base := v.versions.base()
	p.encodeFresh(w, v, m, &base)
}
