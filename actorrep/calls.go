package actorrep

import (
	"fmt"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch/bitio"
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
	c, err := p.world.encodeCall(proc.definition(), id, p.world.frame+1, params)
	if err != nil {
		return err
	}
	defer p.world.unheld.drop(c)
	if c.def.reliable {
		return v.queueCall(c)
	}
	switch {
	case v.state != open:
		return ErrNotThere
	case p.out.budget() <= 0:
		return ErrSaturated
	case !v.mention(c):
		return ErrFull
	}
	return nil
}

// callAll sends a multicast to all who see the actor.
func (w *World) callAll(b *Base, proc *procedure, id int, params unsafe.Pointer) error {
	if b.tornOff || len(b.rep.views) == 0 {
		return nil
	}
	c, err := w.encodeCall(proc.definition(), id, w.frame+1, params)
	if err != nil {
		return err
	}
	defer w.unheld.drop(c)
	for _, v := range b.rep.views {
		switch {
		case c.def.reliable || v.peer.replay: // a recording loses nothing
			if err := v.queueCall(c); err != nil {
				w.Counters.CallsDropped++
			}
		case v.state != open || !v.mention(c):
			w.Counters.CallsDropped++
		}
	}
	return nil
}

// maxPerUpdate is how often one unreliable procedure rides with an update (Unreal's MaxRPCPerNetUpdate).
const maxPerUpdate = 2

// mention has an unreliable call ride with the actor's next values.
func (v *view) mention(c *call) bool {
	n := 0
	for _, o := range v.mentions {
		if o.rpc == c.rpc {
			n++
		}
	}
	if n >= maxPerUpdate || len(v.mentions) >= maxMentions {
		return false
	}
	v.mentions = append(v.mentions, c.held())
	v.flags |= mentioning
	v.wake()
	return true
}

// queueCall keeps a reliable call for the Step at hand, where it follows the values of its tick.
func (v *view) queueCall(c *call) error {
	out := v.peer.out
	full := out.room(v) <= len(v.calls) && v.state == open
	calls, err := v.peer.world.await(v.calls, c, full, v.b.class.name, out.fail)
	if err != nil {
		return err
	}
	v.calls = calls
	v.speakUp()
	return nil
}

// await puts a reliable call behind those that wait. When the channel is full the procedure's Overflow says what
// happens, and fail ends the connection; MaxWaitingCalls bounds the queue always.
func (w *World) await(calls []*call, c *call, full bool, class string, fail func(error)) ([]*call, error) {
	if full {
		switch c.def.overflow {
		case Refuse:
			return nil, ErrFull
		case CloseConn:
			fail(fmt.Errorf("%w: %s", ErrFull, class))
			return nil, ErrFull
		case Coalesce:
			for i, o := range calls {
				if o.rpc == c.rpc {
					calls[i] = c.held()
					w.unheld.drop(o)
					w.Counters.CallsDropped++
					return calls, nil
				}
			}
		}
	}
	if len(calls) >= MaxWaitingCalls {
		if c.def.overflow != DropOldest {
			return nil, ErrFull
		}
		calls = w.unheld.dropFirst(calls, 1)
		w.Counters.CallsDropped++
	}
	return append(calls, c.held()), nil
}

// speakUp puts the view where its reliable messages are sent.
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

// say sends what a view has to say and reports whether that is all.
func (v *view) say() bool {
	p := v.peer
	switch v.state {
	case asleep: // it must wake first
		if !v.inOpening {
			v.dirty |= v.b.class.layout.All() // so that it is opened
			v.wake()
		}
		return len(v.calls) == 0
	case wanted:
		return len(v.calls) == 0
	}
	if v.toldAud == v.aud && len(v.calls) == 0 {
		return true
	}
	if p.out.room(v) < 4 {
		return false
	}
	w := p.world.message()
	if v.toldAud != v.aud {
		w.WriteBits(msgRole, msgBits)
		writeAudience(w, v.aud)
	}
	m := v.dirty & v.allowed
	if v.state != open {
		m = 0 // its values are in the opening bunch, or follow
	}
	if m != 0 && len(v.calls) > 0 {
		p.writeProps(w, v, m)
	} else {
		m = 0
	}
	sent := 0
	for _, c := range v.calls {
		mark, at := w.Mark(), w.Len()
		w.WriteBits(msgCall, msgBits)
		w.WriteUint32(c.frame)
		c.write(w)
		if w.Err() != nil {
			w.Rollback(mark)
			break
		}
		p.rowBits[v.b.class.firstRow+len(v.b.class.layout.Units)+c.rpc] += uint64(w.Len() - at)
		sent++
	}
	if w.Err() != nil || !p.out.reliable(v, w) {
		return false
	}
	p.world.Counters.CallsSent += uint64(sent)
	v.toldAud = v.aud
	v.tell(m)
	v.calls = p.world.unheld.dropFirst(v.calls, sent)
	return len(v.calls) == 0
}

// writeMentions writes the calls of a record.
func writeMentions(w *bitio.Writer, v *view) {
	w.WriteBits(uint64(len(v.mentions)-1), 3)
	for _, c := range v.mentions {
		c.write(w)
	}
}

// receiveCalls runs a client's calls. An error ends the connection.
func (p *Peer) receiveCalls(v *view, r *bitio.Reader) error {
	w := p.world
	for r.Remaining() > 0 {
		if kind := r.ReadBits(msgBits); kind != msgCall {
			w.Counters.Bad++
			return fmt.Errorf("%w: a client sends calls only", errFormat)
		}
		id, params, err := w.readCall(r)
		if err != nil {
			w.Counters.Bad++
			return err
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
	if b.world != w {
		return nil // it went meanwhile
	}
	c := b.class
	if id >= len(c.rpcs) || c.rpcs[id].definition().kind != serverRPC {
		return fmt.Errorf("%w: %s has no procedure %d for clients", errFormat, c.name, id)
	}
	proc := &c.rpcs[id]
	// Refused calls aren't decoded. Ownership may have changed while the call was under way: no reason to part.
	if b.Owner() != p {
		w.Counters.CallsRefused++
		return nil
	}
	if ok, flood := take(&p.limits, proc.definition(), c.id, id, w.now); flood {
		return fmt.Errorf("%w: %s.%s", ErrRateLimited, c.name, proc.name)
	} else if !ok {
		w.Counters.CallsRefused++
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
	if err := proc.run(call, b.self, value); err != nil {
		w.Counters.CallErrors++
		if w.cfg.Failed != nil {
			w.cfg.Failed(fmt.Errorf("%s.%s: %w", c.name, proc.name, err))
		}
	}
	return nil
}
