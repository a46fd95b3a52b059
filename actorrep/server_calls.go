package actorrep

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// call sends a client procedure to the owner.
func (p *Peer) call(b *Base, proc *procedure, id int, params unsafe.Pointer) error {
	v := p.views[b]
	if v == nil {
		if !b.tornOff { // owned, but not relevant yet
			p.want(b)
		}
		if v = p.views[b]; v == nil {
			return ErrNotThere
		}
	}
	if p.lacking(b.class) {
		return ErrNoClass
	}
	c, err := p.world.encodeCall(proc, id, p.world.frame+1, params)
	if err != nil {
		return err
	}
	defer p.world.unheld.drop(c)
	if c.def.reliable {
		return v.queueCall(c)
	}
	switch {
	case v.state == asleep:
		return errUnwoken
	case v.state != open:
		return ErrNotThere
	case p.out.budget() <= 0:
		return ErrSaturated
	}
	return v.mention(c)
}

// callAll sends a multicast to all who see the actor. Before the actor's first Step it is kept for all who will see it
// then.
func (w *World) callAll(b *Base, proc *procedure, id int, params unsafe.Pointer) error {
	if b.tornOff || len(b.rep.views) == 0 && !b.rep.newborn() {
		return nil
	}
	c, err := w.encodeCall(proc, id, w.frame+1, params)
	if err != nil {
		return err
	}
	defer w.unheld.drop(c)
	if b.rep.newborn() {
		if len(w.early[b]) >= MaxWaitingCalls {
			return ErrFull
		}
		if w.early == nil {
			w.early = map[*Base][]*call{}
		}
		w.early[b] = append(w.early[b], c.held())
	}
	w.enter() // until no connection can end and be removed
	defer w.exit()
	var missed *MissedError
	for _, v := range b.rep.views {
		switch {
		case v.peer.lacking(b.class): // it doesn't see the actor
		case c.def.reliable || v.peer.replay: // a recording loses nothing
			if err := v.queueCall(c); err != nil {
				w.Counters.CallsDropped++
				if missed == nil {
					missed = &MissedError{Err: err}
				}
				missed.Peers = append(missed.Peers, v.peer)
			}
		case v.state != open || v.mention(c) != nil:
			w.Counters.CallsDropped++
		}
	}
	if missed != nil {
		return missed
	}
	return nil
}

// dropEarly forgets the multicasts of new actors.
func (w *World) dropEarly() {
	for _, calls := range w.early {
		w.unheld.dropFirst(calls, len(calls))
	}
	clear(w.early)
}

// maxPerUpdate is how many unreliable calls of one procedure an update carries (Unreal's MaxRPCPerNetUpdate).
const maxPerUpdate = 2

// mentionHead is an upper bound of the bits of a chunk and its only record, without values and calls.
const mentionHead = 256

// mention has an unreliable call sent with the actor's next values, or without them in a packet of its own. It returns why it can't: too many are, or a packet has no
// room for all of them.
func (v *view) mention(c *call) error {
	n, most := 0, v.peer.out.packetBits()-mentionHead-c.size()
	if most < 0 {
		return fmt.Errorf("%w: an unreliable call goes in one packet, and has %d bits", channel.ErrTooLarge, c.size())
	}
	for _, o := range v.mentioned() {
		if o.rpc == c.rpc {
			n++
		}
		most -= o.size()
	}
	if n >= maxPerUpdate || len(v.mentioned()) >= maxMentions || most < 0 {
		return ErrSaturated
	}
	if v.mentions == nil {
		v.mentions = new([]*call)
	}
	*v.mentions = append(*v.mentions, c.held())
	v.flags |= mentioning
	v.wake()
	return nil
}

// dropMentions drops the unreliable calls for which packets have become too small since they were made.
func (v *view) dropMentions() {
	w := v.peer.world
	w.Counters.CallsDropped += uint64(len(v.mentioned()))
	*v.mentions = w.unheld.dropFirst(*v.mentions, len(*v.mentions))
	v.flags &^= mentioning
}

// queueCall queues a reliable call for this tick's Step, which sends it after the actor's values. They are compared then
// whatever the actor's update frequency.
func (v *view) queueCall(c *call) error {
	switch {
	case v.peer.finishing:
		return channel.ErrClosed
	case v.carry != nil && v.carry.departed:
		return ErrDeparted
	}
	out := v.peer.out
	full := out.room(v) <= len(v.calls) && v.state == open
	w := v.peer.world
	w.enter() // who hears of the end may remove the connection
	defer w.exit()
	given := v.given()
	calls, err := w.await(v.calls[given:], c, full, v.b.class.name, func(err error) { w.endings = append(w.endings, ending{v.peer, err}) })
	if err != nil {
		return err
	}
	v.calls = append(v.calls[:given], calls...)
	v.b.force()
	v.speakUp()
	if v.state == asleep {
		v.reopen()
	}
	return nil
}

// await appends a reliable call to those that wait. When the channel is full the procedure's Overflow decides, and fail
// ends the connection. MaxWaitingCalls always bounds the queue.
func (w *World) await(calls []*call, c *call, full bool, class string, fail func(error)) ([]*call, error) {
	if full || len(calls) >= MaxWaitingCalls && c.def.overflow == Coalesce {
		switch c.def.overflow {
		case Refuse:
			return nil, ErrFull
		case CloseConn:
			fail(fmt.Errorf("%w: %s", ErrFull, class))
			return nil, ErrFull
		case Coalesce:
			for i, o := range calls {
				if o.rpc == c.rpc { // the newest is queued last, so the order of calls is kept
					copy(calls[i:], calls[i+1:])
					calls[len(calls)-1] = c.held()
					w.unheld.drop(o)
					w.Counters.CallsDropped++
					return calls, nil
				}
			}
		}
	}
	if len(calls) >= MaxWaitingCalls {
		oldest := slices.IndexFunc(calls, func(o *call) bool { return o.def.overflow == DropOldest })
		if c.def.overflow != DropOldest || oldest < 0 {
			return nil, ErrFull
		}
		w.unheld.drop(calls[oldest])
		calls = slices.Delete(calls, oldest, oldest+1)
		w.Counters.CallsDropped++
	}
	return append(calls, c.held()), nil
}

// speakUp queues the view to send its reliable messages.
func (v *view) speakUp() {
	if !v.inSpeaking {
		v.inSpeaking = true
		v.peer.speaking = append(v.peer.speaking, v)
	}
}

// speak sends reliable messages: roles, and calls behind the values that their actor has in this Step.
func (p *Peer) speak() {
	kept := p.speaking[:0]
	for _, v := range p.speaking {
		if v.state == ended || v.say() {
			v.inSpeaking = false
		} else {
			kept = append(kept, v)
		}
	}
	clear(p.speaking[len(kept):])
	p.speaking = kept
}

// say sends a view's reliable messages and reports whether all are sent.
func (v *view) say() bool {
	switch {
	case v.state == wanted, v.state == asleep:
		v.reopen() // it wakes first
		return len(v.calls) == 0
	case v.flags&inParts != 0, v.toldAud == v.aud && len(v.calls) == 0:
		return true // opened speaks up for what waits behind the opening
	}
	return v.speak(false)
}

// unacked is the units whose newest values the client may not have. They are sent before a call.
func (v *view) unacked() layout.Mask { return (v.dirty | v.peer.sent.inFlight(v)) & v.allowed }

// speak sends the role, the values before the calls, and the calls. With last it ends by saying that the actor is torn
// off. All are sent in order on the actor's own channel, in as many bunches as needed. It returns false when there is no
// room for all.
func (v *view) speak(last bool) bool {
	p := v.peer
	need := layout.Mask(0)
	if len(v.calls) > 0 || last {
		need = v.unacked()
	}
	for {
		most := p.most(p.out.room(v))
		w := p.world.message()
		w.SetLimit(most)
		if v.toldAud != v.aud {
			w.WriteBits(wire.Role, wire.KindBits)
			writeRole(w, v.aud)
			if w.Err() != nil {
				return false
			}
		}
		m, sent := p.writeSome(w, v, need, most, most), 0
		if m == need {
			sent = p.writeCalls(w, v)
		}
		all := m == need && sent == len(v.calls)
		if all && last {
			w.WriteBits(wire.TornOff, wire.KindBits)
		}
		if w.Len() == 0 && m == need && p.out.room(v) == p.out.newRoom() && !p.removed() {
			p.world.dropCalls(v.b, p, v.calls[:1], ErrTooLarge) // the channel is empty
			v.calls = slices.Delete(v.calls, 0, 1)
			if len(v.calls) > 0 {
				continue
			}
			return true
		}
		if w.Len() == 0 {
			if never := v.giveUp(w, need); never != 0 {
				need &^= never
				continue
			}
			return false
		}
		if !p.out.reliable(v, w, false, m) {
			return false
		}
		v.toldAud = v.aud
		v.tell(m)
		v.promise(m)
		p.sent.settle(v, m)
		need &^= m
		p.world.Counters.CallsSent += uint64(sent)
		v.noteSent(v.calls[:sent])
		v.tellReliable(v.calls[:sent])
		v.calls = p.world.unheld.dropFirst(v.calls, sent)
		if m != 0 && need == 0 && v.state == open {
			v.reason = ReasonSent
		}
		if all {
			return true
		}
	}
}

// most is the bits of a message that takes so many reliable bunches at most.
func (p *Peer) most(room int) int {
	largest := p.out.largest()
	if packet := p.out.packetBits(); room <= largest/max(packet, 1) { // their product may not fit an int of 32 bits
		return room * packet
	}
	return largest
}

// writeSome writes those of the units of m that fit a message of most bits, or of several bits if it is more than one unit, and returns them.
func (p *Peer) writeSome(w *bitio.Writer, v *view, m layout.Mask, most, several int) layout.Mask {
	for mark := w.Mark(); m != 0; m = half(m) {
		limitValues(w, m, most, several)
		if p.writeProps(w, v, m); w.Err() == nil {
			break
		}
		w.Rollback(mark)
	}
	w.SetLimit(most)
	return m
}

// giveUp gives up sending the first unit of m, which w has no room for, if it has none even when everything is acked. It returns the unit, or 0 if
// the unit waits for acks. The client keeps what it has. The game is told once, until the unit has fitted again.
func (v *view) giveUp(w *bitio.Writer, m layout.Mask) layout.Mask {
	p := v.peer
	if m == 0 || p.removed() {
		return 0
	}
	m &= -m
	mark := w.Mark()
	w.SetLimit(p.most(p.out.newRoom()))
	p.writePropsHead(w, v, m)
	base, room := v.versions.base(), [1]uint16{}
	v.writeUnits(w, m, &base, room[:0])
	fits := w.Err() == nil
	if w.Rollback(mark); fits {
		return 0
	}
	v.dirty &^= m
	v.rest &^= m
	if p.oversize[v]&m == 0 {
		if p.oversize == nil {
			p.oversize = map[*view]layout.Mask{}
		}
		p.oversize[v] |= m
		p.world.Counters.Unfit++
		p.world.tell(v.b, v.path(m), p, v.tooLarge(m))
	}
	return m
}

// fitted notes that units were sent.
func (v *view) fitted(m layout.Mask) {
	if over := v.peer.oversize[v]; over&m == 0 {
		return
	} else if over &^= m; over != 0 {
		v.peer.oversize[v] = over
	} else {
		delete(v.peer.oversize, v)
	}
}

// path is the name of the first unit of m.
func (v *view) path(m layout.Mask) string {
	return v.b.class.layout.Units[bits.TrailingZeros64(m)].Path
}

// tooLarge says of the first unit of m that it is too large for the connection.
func (v *view) tooLarge(m layout.Mask) error {
	return fmt.Errorf("%w: the connection's ReliableBuffer or MaxMemory has no room for %s", channel.ErrTooLarge, v.path(m))
}

// valueBytes bounds the values of several units in one bunch of an actor's channel, which lets other traffic take turns. A
// single unit always takes less.
const valueBytes = 16 << 10

func limitValues(w *bitio.Writer, m layout.Mask, most, several int) {
	if m&(m-1) != 0 {
		most = min(several, valueBytes*8)
	}
	w.SetLimit(most)
}

// half is the first half of the units of m; none for one unit.
func half(m layout.Mask) layout.Mask {
	for n := (bits.OnesCount64(m) + 1) / 2; n > 0; n-- {
		m &^= 1 << (bits.Len64(m) - 1)
	}
	return m
}

// writeCalls writes those of the calls that wait that fit, and returns how many.
func (p *Peer) writeCalls(w *bitio.Writer, v *view) (sent int) {
	for _, c := range v.calls {
		mark, at := w.Mark(), w.Len()
		w.WriteBits(wire.Call, wire.KindBits)
		w.WriteUint32(c.frame)
		c.write(w)
		if w.Err() != nil {
			w.Rollback(mark)
			break
		}
		if c.rpc < len(v.b.class.rpcs) {
			p.accountCall(v.b.class, c.rpc, w.Len()-at)
		}
		sent++
	}
	return sent
}

// flush sends the waiting calls, with the actor's current values, before the actor is destroyed or changes hands. It
// reports whether none is left.
func (v *view) flush() bool {
	if len(v.calls) == 0 || v.peer.removed() {
		return true
	}
	v.b.world.compareNow(v.b)
	if v.state == wanted || v.state == asleep {
		if !v.peer.ready {
			return false
		}
		if _, ok := v.peer.openInOrder(v); !ok {
			return false
		}
	}
	return v.openMore(true) && v.speak(false)
}

// Finish sends the waiting calls when the connection closes in order (channel.Finisher).
func (v *view) Finish(ch *channel.Channel) bool {
	if ch != v.ch || v.state == ended {
		return true
	}
	v.b.world.enter()
	defer v.b.world.exit()
	return v.flush()
}

// Finish has no more calls accepted when the connection closes in order (channel.Finisher), and tells the client of those
// that were refused. Actors without a channel get none any more: their calls are dropped.
func (o *channelOutlet) Finish(*channel.Channel) bool {
	p := o.peer
	if p.removed() {
		return true
	}
	p.world.enter()
	defer p.world.exit()
	if !p.finishing {
		p.finishing = true
		for _, v := range p.list {
			if v.state == wanted || v.state == asleep {
				p.world.dropCalls(v.b, p, v.calls, channel.ErrClosed)
				v.calls = nil
			}
		}
	}
	p.tellRefused()
	return len(p.refusals) == 0
}

// flushCalls sends the calls of an actor and its components that wait for an owner, before the owner changes. Calls
// without room are dropped: they may not follow values that only the old owner may see.
func (b *Base) flushCalls(p *Peer) {
	if v := p.views[b]; v != nil && !v.flush() {
		kept := v.calls[:0]
		for i, c := range v.calls {
			if c.def.kind == clientRPC {
				b.world.dropCalls(b, p, v.calls[i:i+1], ErrOwnerGone)
			} else {
				kept = append(kept, c)
			}
		}
		clear(v.calls[len(kept):])
		v.calls = kept
	}
	for c := range b.components {
		c.flushCalls(p)
	}
}

// writeMentions writes the calls of a record.
func writeMentions(w *bitio.Writer, v *view) {
	w.WriteBits(uint64(len(v.mentioned())-1), 3)
	for _, c := range v.mentioned() {
		c.write(w)
	}
}

// receiveCalls runs a client's calls. It counts those in c, if there is one; after Depart it keeps them for Stay. An error ends the connection.
func (p *Peer) receiveCalls(v *view, r *bitio.Reader, c *carry) error {
	w := p.world
	for r.Remaining() > 0 && !p.removed() { // a call may remove its connection
		if c != nil && c.departed {
			return c.hold(r)
		}
		if kind := r.ReadBits(wire.KindBits); kind != wire.Call {
			w.Counters.Bad++
			return fmt.Errorf("%w: a client sends calls only", errFormat)
		}
		id, params, err := w.readCall(r)
		if err != nil {
			w.Counters.Bad++
			return err
		}
		if c != nil {
			c.ran++
		}
		if err := p.receiveCall(v, id, params); err != nil {
			w.Counters.CallsRefused++
			return err
		}
	}
	return nil
}

func (p *Peer) receiveCall(v *view, id int, params *bitio.Reader) error {
	w, b := p.world, v.b
	w.Counters.CallsReceived++
	c := b.class
	if id >= len(c.rpcs) || c.rpcs[id].definition().kind != serverRPC {
		return fmt.Errorf("%w: %s has no procedure %d for clients", errFormat, c.name, id)
	}
	proc := &c.rpcs[id]
	d := proc.definition()
	p.calls[c.firstCall+id].received++
	// Refused calls aren't decoded. The actor may have gone, or got another owner, while the call was in flight, so this
	// doesn't end the connection. With AnyClient the caller must still have the actor.
	switch {
	case b.world != w, d.anyClient && v.state == ended && b.Owner() != p:
		p.tellCame(b, proc, "the player doesn't have the actor any more")
		p.refuse(b, id, wire.Absent)
		return nil
	case !d.anyClient && b.Owner() != p:
		p.tellCame(b, proc, "the player doesn't own the actor")
		p.refuse(b, id, wire.NotOwner)
		return nil
	}
	if ok, flood := take(&p.limits, d, c.id, id, w.now); flood {
		return fmt.Errorf("%w: %s.%s", ErrRateLimited, c.name, proc.name)
	} else if !ok {
		p.tellCame(b, proc, "too many of them")
		p.refuse(b, id, wire.TooMany)
		return nil
	}
	value, ok := proc.read(params)
	if !ok {
		return fmt.Errorf("%w: parameters of %s.%s", errFormat, c.name, proc.name)
	}
	defer proc.give(value)
	call := Call{World: w, Peer: p, Frame: w.frame, Now: p.out.now()}
	if !proc.check(call, b.self, value) {
		return fmt.Errorf("%w: %s.%s", ErrInvalid, c.name, proc.name)
	}
	p.tellCame(b, proc, "")
	if err := proc.run(call, b.self, value); err != nil {
		w.Counters.CallErrors++
		w.report(fmt.Errorf("%s.%s: %w", c.name, proc.name, err))
	}
	return nil
}

// maxRefusals bounds the refusals that wait to be told to a client. Those above it are told as one, without what they are of.
const maxRefusals = 64

// refuse notes that a client's call doesn't run. The next Step tells the client, if the call was to arrive.
func (p *Peer) refuse(b *Base, id int, why wire.Why) {
	p.calls[b.class.firstCall+id].refused++
	p.world.Counters.CallsRefused++
	if !b.class.rpcs[id].definition().reliable {
		return
	}
	f := wire.Refusal{GUID: uint32(b.guid), Procedure: uint32(id), Why: why}
	for i := range p.refusals {
		if o := &p.refusals[i]; o.GUID == f.GUID && o.Procedure == f.Procedure && o.Why == f.Why || i == maxRefusals {
			o.Count++
			return
		}
	}
	if len(p.refusals) == maxRefusals {
		f = wire.Refusal{}
	}
	f.Count = 1
	p.refusals = append(p.refusals, f)
}

// tellRefused tells the client of the calls that were refused.
func (p *Peer) tellRefused() {
	p.refusals = tellSome(p.refusals, p.out.refused)
}
