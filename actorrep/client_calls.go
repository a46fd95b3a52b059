package actorrep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// pendingCall is a received call that runs in the next Step.
type pendingCall struct {
	m      *mirror
	proc   *procedure
	frame  uint32
	params unsafe.Pointer
}

// maxPendingCalls bounds the received calls that wait for Step. Calls above it are dropped, counted, and reported as
// ErrCallsPending.
const maxPendingCalls = 4096

// receiveCall decodes a call from the server and queues it for Step.
func (m *mirror) receiveCall(r *bitio.Reader, frame uint32, reliable bool) error {
	w := m.world
	id, params, err := w.readCall(r)
	if err != nil {
		return err
	}
	if reliable {
		if done, err := m.heardCall(id, params); done {
			return err
		}
	}
	w.Counters.CallsReceived++
	if id >= len(m.class.rpcs) {
		return fmt.Errorf("%w: %s has no procedure %d", errFormat, m.class.name, id)
	}
	local := m.class.rpcs[id].local
	if len(w.client.pending) >= maxPendingCalls {
		w.client.dropped++
		w.Counters.CallsDropped++
		m.tellCalled(0, m.class.rpcs[id].name, reliable, "too many wait for Step")
		return nil
	}
	if m.b == nil || local < 0 {
		w.Counters.CallsDropped++
		m.tellCalled(0, m.class.rpcs[id].name, reliable, "the client lacks the actor or the procedure")
		if proc := &m.class.rpcs[id]; local < 0 && m.class.local != nil && !proc.told {
			proc.told = true
			w.report(fmt.Errorf("%w: the server calls %s.%s", ErrNoProcedure, m.class.name, proc.name))
		}
		return nil
	}
	proc := &m.class.local.rpcs[local]
	if proc.definition().kind == serverRPC {
		return fmt.Errorf("%w: %s.%s is for servers", errFormat, m.class.name, proc.name)
	}
	value, ok := proc.read(params)
	if !ok {
		w.Counters.CallsDropped++
		w.client.untook(m.b, proc.name, ErrUnread)
		return nil
	}
	m.tellCalled(0, proc.name, reliable, "")
	m.waiting++
	w.client.pending = append(w.client.pending, pendingCall{m, proc, frame, value})
	return nil
}

// run runs a received call. Meanwhile its actor may have been opened again, on another channel.
func (c *client) run(p *pendingCall) {
	defer p.proc.give(p.params)
	p.m.waiting--
	b := p.m.b
	if b == nil {
		b = c.world.byGUID[p.m.guid]
	}
	if b == nil || b.class != p.m.class.local {
		c.world.Counters.CallsDropped++
		return
	}
	if err := p.proc.run(Call{World: c.world, Frame: p.frame, Now: c.world.now}, b.self, p.params); err != nil {
		c.world.Counters.CallErrors++
		c.world.report(fmt.Errorf("%s.%s: %w", p.m.class.name, p.proc.name, err))
	}
}

// call sends a call to the server, or returns why it can't.
func (c *client) call(b *Base, proc *procedure, id int, params unsafe.Pointer) error {
	m, d := b.mirror, proc.definition()
	if m.moved != nil && d.reliable {
		to, b, id, err := m.goneTo(proc)
		if err != nil {
			return err
		}
		return to.client.call(b, &b.class.rpcs[id], id, params)
	}
	remote := -1
	for i := range m.class.rpcs {
		if m.class.rpcs[i].local == id {
			remote = i
		}
	}
	switch {
	case !m.owned && !d.anyClient:
		return ErrNotOwner
	case remote < 0:
		return ErrNoProcedure
	case b.tornOff:
		return errTornOff
	case m.asleep:
		return errAsleep
	case m.ch == nil:
		return ErrNotThere
	case !c.mayCall(d, b.class.id, id):
		return ErrRateLimited
	case !proc.check(Call{World: c.world, Frame: uint32(c.frame), Now: c.world.now}, b.self, params):
		return ErrInvalid
	}
	k, err := c.world.encodeCall(proc, remote, 0, params)
	if err != nil {
		return err
	}
	defer c.world.unheld.drop(k)
	if !d.reliable {
		if !m.ch.Conn().IsNetReady() {
			return ErrSaturated
		}
		if err = m.send(k); errors.Is(err, channel.ErrNotSent) {
			return ErrSaturated
		}
		return err
	}
	return m.queue(k)
}

// mayCall reports whether a call is within its rate.
func (c *client) mayCall(d *definition, class, rpc int) bool {
	ok, _ := take(&c.limits, d, class, rpc, c.world.now)
	return ok
}

// send sends a call at once.
func (m *mirror) send(k *call) error {
	w := m.world.message()
	w.WriteBits(wire.Call, wire.KindBits)
	k.write(w)
	if k.def.reliable && !hasRoom(m.ch, w.Len()) {
		return channel.ErrReliableFull
	}
	before := m.ch.NumOutRec()
	r, err := m.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: k.def.reliable})
	if err != nil {
		return err
	}
	m.world.Counters.CallsSent++
	m.tellCalled(r.First, k.name, k.def.reliable, "")
	if k.def.reliable {
		m.bunches += m.ch.NumOutRec() - before // 0 when the call joined the last bunch
		m.unacked = append(m.unacked, sentCall{k.held(), m.bunches})
		m.sent++
	}
	return nil
}

// forgetAcked forgets the calls that the server has acked. While another World follows the newest of them are kept: the server may have given
// the player away before it had them.
func (m *mirror) forgetAcked(ch *channel.Channel) {
	if len(m.unacked) == 0 || ch != m.ch {
		return
	}
	n, bytes, acked := 0, 0, m.bunches-ch.NumOutRec()
	for n < len(m.unacked) && m.unacked[n].bunch <= acked {
		bytes += len(m.unacked[n].call.data)
		n++
	}
	m.acked = n
	if m.owned && m.world.client.isFollowed() {
		over := 0
		for over < n && (n-over > maxAcked || bytes > maxAckedBytes) {
			bytes -= len(m.unacked[over].call.data)
			over++
		}
		n = over
	}
	m.forget(n)
}

// forgetUnacked forgets the calls in flight, when the channel closes or the actor gets another one. Of those of a connection that has ended
// the game knows.
func (m *mirror) forgetUnacked() {
	if m.ch == nil || m.ch.Conn().Table().Ended() {
		m.forget(len(m.unacked))
	} else {
		m.dropUnacked()
	}
}

// dropUnacked reports the calls in flight as ErrUnacked.
func (m *mirror) dropUnacked() {
	for _, u := range m.unacked[m.acked:] {
		m.world.tell(m.self, u.call.name, nil, ErrUnacked)
	}
	m.forget(len(m.unacked))
}

// queue sends a reliable call, or queues it until there is room.
func (m *mirror) queue(k *call) error {
	if m.finishing {
		return channel.ErrClosed
	}
	if most := m.ch.MaxReliable(); wire.KindBits+k.size() > most {
		return fmt.Errorf("%w: the call has %d bits, and the connection's ReliableBuffer or MaxMemory has room for %d", channel.ErrTooLarge, k.size(), most)
	}
	if len(m.calls) == 0 && !m.awaits() {
		err := m.send(k)
		if err == nil || !errors.Is(err, channel.ErrReliableFull) {
			return err
		}
	}
	calls, err := m.world.await(m.calls, k, true, m.class.name, func(err error) { m.ch.Conn().Fail(err, true) })
	if err != nil {
		return err
	}
	if len(m.calls) == 0 {
		m.world.client.speaking = append(m.world.client.speaking, m)
	}
	m.calls = calls
	return nil
}

// speak sends the queued calls for which there is room.
func (m *mirror) speak() {
	for len(m.calls) > 0 && m.ch != nil && !m.awaits() {
		switch err := m.send(m.calls[0]); {
		case err == nil:
			m.calls = m.world.unheld.dropFirst(m.calls, 1)
		case errors.Is(err, channel.ErrTooLarge): // another server's connection, which had room for it, accepted it
			m.world.dropCalls(m.self, nil, m.calls[:1], err)
			m.calls = slices.Delete(m.calls, 0, 1)
		default:
			return
		}
	}
}

// Finish sends the queued calls when the connection closes in order (channel.Finisher). No more are accepted.
func (m *mirror) Finish(ch *channel.Channel) bool {
	m.finishing = true
	m.speak()
	return ch != m.ch || len(m.calls) == 0
}

// speak sends the queued calls of all actors.
func (c *client) speak() {
	kept := c.speaking[:0]
	for _, m := range c.speaking {
		m.speak()
		if m.ch == nil && c.over[m.guid] != m {
			c.world.dropCalls(m.self, nil, m.calls, ErrActorGone)
			m.calls = nil
			m.letGo()
		}
		if len(m.calls) > 0 {
			kept = append(kept, m)
		}
	}
	clear(c.speaking[len(kept):])
	c.speaking = kept
}

// refused reports reliable calls that reached the server and didn't run there.
func (c *client) refused(f wire.Refusal) error {
	w := c.world
	id := netguid.GUID(f.GUID)
	b, e := w.byGUID[id], &RefusedError{Calls: int(min(f.Count, math.MaxInt32))}
	if f.GUID != 0 {
		e.Err = map[wire.Why]error{wire.NotOwner: ErrNotOwner, wire.TooMany: ErrRateLimited, wire.Absent: ErrActorGone}[f.Why]
	}
	switch {
	case f.GUID != 0 && e.Err == nil, b != nil && !b.mirror.class.called(f.Procedure):
		return fmt.Errorf("%w: refused calls of %v", errFormat, id)
	}
	w.Counters.CallsRefused += uint64(f.Count)
	switch {
	case w.cfg.Failed == nil:
	case b == nil:
		c.refusals.add(w, e)
	default:
		c.refusals.add(w, b.failed(b.mirror.class.rpcs[f.Procedure].name, nil, e))
	}
	return nil
}
