package actorrep

import (
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// openWanted opens actors, the most urgent first, as far as bandwidth and the connection's share of the Step's openings
// allow; none yet when it isn't their turn.
func (p *Peer) openWanted(late bool) {
	may := p.mayOpen()
	more := p.unopened() > may
	kept := p.opening[:0]
	for _, v := range p.opening {
		if v.state == wanted && !p.lacking(v.b.class) || v.state == asleep && v.wakes() {
			kept = append(kept, v)
		} else {
			v.inOpening = false
		}
	}
	clear(p.opening[len(kept):])
	p.opening, p.noRoom, p.turns.short[openings] = kept, p.noRoom && late, false
	if p.holding = 0; len(kept) == 0 {
		return
	}
	p.peaks.opening = max(p.peaks.opening, len(kept))
	room, opened := p.out.budget(), p.world.Counters.Opened
	if late {
		room = 0
	}
	if len(kept) > 1 && room > 0 && (more || len(kept)*minOpenBits > room) {
		p.rank(kept)
	}
	waiting, held := kept[:0], 0
	for _, v := range kept {
		if v.state == wanted && p.holds(v.b) {
			held++
			waiting = append(waiting, v)
			continue
		}
		if !late && v.state == wanted {
			v.reason = ReasonNone // it may have changed since the last Step
		}
		if room <= 0 || p.world.Counters.Opened-opened >= uint64(may) || p.waitsForOthers(v) {
			p.turns.short[openings] = room <= 0 && !p.noRoom
			waiting = append(waiting, v)
			continue
		}
		bits, ok := p.openInOrder(v)
		room -= bits // also of a parent whose component has no room
		p.turns.had[openings] += bits
		if !ok {
			if p.ending[v.b.guid] == nil && !p.waitsForOthers(v) { // no channel, or no room in the packets under way
				room, p.noRoom = 0, true
			}
			waiting = append(waiting, v)
			continue
		}
		v.inOpening = false
	}
	p.holding = held
	clear(kept[len(waiting):])
	p.opening = waiting
}

// A client keeps the bunches of an opening until it has the last. So that its memory is enough for those that lost one, an opening in several bunches begins only when
// those before it are all sent, and no more than openingsBytes of them aren't acked. See netconn.Config.MaxMemory.
const openingsBytes = 256 << 10

// crowded reports whether another opening in several bunches must wait.
func (p *Peer) crowded() bool {
	kept, sum := p.inParts[:0], uint64(0)
	for _, v := range p.inParts {
		if v.state == opening && v.flags&inParts != 0 {
			kept = append(kept, v)
			if sum += v.total / 8; v.flags&unfinished != 0 {
				sum += openingsBytes
			}
		}
	}
	clear(p.inParts[len(kept):])
	p.inParts = kept
	return sum >= openingsBytes
}

// waitsForOthers reports whether the opening of an actor, or of one that it is a component of, takes several bunches and must wait for others.
func (p *Peer) waitsForOthers(v *view) bool {
	for ; v != nil && v.state == wanted; v = p.views[v.b.parent] {
		if v.flags&large != 0 && p.crowded() {
			v.reason = ReasonNoRoom
			return true
		}
	}
	return false
}

// minOpenBits is about the size of the smallest opening.
const minOpenBits = 100

// openInOrder opens a component's parent before the component, however urgent the component is.
func (p *Peer) openInOrder(v *view) (bits int, ok bool) {
	if v.state != wanted && v.state != asleep {
		return 0, true // it was opened for a component's sake
	}
	if v.b.parent != nil {
		if pv := p.views[v.b.parent]; pv != nil && pv.state == wanted && !p.lacking(pv.b.class) {
			if bits, ok = p.openInOrder(pv); !ok {
				return bits, false
			}
		}
	}
	n, ok := p.open(v)
	return bits + n, ok
}

// open makes an actor's channel and sends its first values.
func (p *Peer) open(v *view) (bits int, ok bool) {
	b := v.b
	if p.ending[b.guid] != nil || p.lacking(b.class) || v.state == wanted && p.holds(b) {
		return 0, false
	}
	l := b.class.layout
	again := v.state == asleep
	m := v.dirty & v.allowed
	known := m // once the opening has arrived
	if !again {
		initial := v.mayHave(v.aud | layout.Initial)
		values := l.NonZero(b.rep.shadow)
		if b.class.initializes { // a zero may differ from what Init sets
			values = l.All()
		}
		m, known = values&initial, initial
		v.dirty = values &^ initial
	}
	w, rest := p.world.message(), layout.Mask(0)
	most, head := p.most(p.out.newRoom()), 0
	several := most
	for mark, all := w.Mark(), m; ; m = half(m) {
		limitValues(w, m, most, several)
		rest = all &^ m
		p.writeOpening(w, v, again, rest != 0 && !again, m)
		head = w.Len()
		p.encodeFresh(w, v, m, nil)
		if w.Err() == nil || m == 0 {
			break
		}
		w.Rollback(mark)
		several = p.paced(most)
	}
	if rest != 0 && !again {
		v.flags |= large
	}
	if w.Err() != nil || p.waitsForOthers(v) || !p.out.open(v, w, known&^rest) {
		v.reason = ReasonNoRoom
		if !again {
			v.dirty = 0
		}
		return 0, false
	}
	v.tell(m) // the dirty ones of a first opening are others
	p.overhead.opens += uint64(head)
	v.total += uint64(w.Len())
	v.promise(m)
	v.state, v.toldAud, v.reason = opening, v.aud, ReasonOpening
	p.world.Counters.Opened++
	if rest != 0 && !again { // when it wakes, the client has all values: the rest is changes
		v.rest = rest
		v.flags |= unfinished | inParts
		v.await()
		if !p.replay {
			p.inParts = append(p.inParts, v)
		}
	}
	return w.Len(), true
}

// paced is the bits of several units in one bunch of an opening in several: no more than the bandwidth, or others would wait for several Steps.
func (p *Peer) paced(most int) int { return min(most, max(p.out.budget(), p.out.packetBits())) }

// openMore sends more of an opening in several bunches, as bandwidth allows; with last, as far as the channel has room.
// It reports whether nothing is left.
func (v *view) openMore(last bool) bool {
	p := v.peer
	for v.flags&unfinished != 0 {
		if !last && p.out.budget() <= 0 {
			return false
		}
		m := v.rest & v.mayHave(v.aud|layout.Initial)
		m |= v.dirty & v.allowed &^ v.told // what a new owner may have
		w, most := p.world.message(), p.most(p.out.room(v))
		w.WriteBool(true)
		if v.toldAud != v.aud {
			w.WriteBits(wire.Role, wire.KindBits)
			writeRole(w, v.aud)
		}
		several := most
		if !last {
			several = p.paced(most)
		}
		part := p.writeSome(w, v, m, most, several)
		if part == m {
			w.PatchBits(0, 0, 1)
		}
		if part == 0 && v.giveUp(w, m) != 0 {
			continue
		}
		if part == 0 && m != 0 || !p.out.reliable(v, w, true, part) {
			v.reason = ReasonNoRoom
			return false
		}
		v.toldAud = v.aud
		v.rest &^= part
		v.tell(part)
		v.promise(part)
		v.total += uint64(w.Len())
		v.reason = ReasonOpening
		if part == m {
			v.dirty |= v.rest // what the connection may no longer have
			v.rest = 0
			v.flags &^= unfinished
		}
	}
	return true
}

// await puts the view into its peer's halves.
func (v *view) await() {
	if v.flags&inTurns == 0 {
		v.flags |= inTurns
		v.peer.halves = append(v.peer.halves, v)
	}
}

// sendHalf sends more of a view's opening or changes as bandwidth allows, and reports whether nothing is left.
func (v *view) sendHalf() bool {
	switch v.state {
	case opening:
		if !v.openMore(false) {
			return false
		}
	case open:
		if !v.sendLarge(&v.rest, true) {
			return false
		}
	}
	v.rest = 0
	v.flags &^= inTurns
	v.wake() // for what has changed meanwhile
	return true
}

// writeOpening writes the head of an opening bunch, up to the values of m. A client keeps the bunches of an opening
// until it has the last, so that no game sees an actor without some of its values.
func (p *Peer) writeOpening(w *bitio.Writer, v *view, again, more bool, m layout.Mask) {
	b := v.b
	o := wire.Opening{GUID: uint32(b.guid), Class: uint32(b.class.id), Frame: p.world.frame, Owner: v.aud&layout.Owner != 0, Autonomous: v.aud&layout.Autonomous != 0, Again: again}
	if b.parent != nil {
		o.Parent = uint32(b.parent.guid)
	}
	w.WriteBool(more)
	o.Write(w)
	w.WriteBits(m, len(b.class.layout.Units))
}

// writeRole writes the role that the client has.
func writeRole(w *bitio.Writer, a layout.Audience) {
	wire.WriteRole(w, a&layout.Owner != 0, a&layout.Autonomous != 0)
}
