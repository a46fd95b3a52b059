package actorrep

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

type pendingCall struct {
	m      *mirror
	proc   *procedure
	frame  uint32
	params unsafe.Pointer
}

const maxPendingCalls = 4096

func (m *mirror) receiveCall(r *bitio.Reader, frame uint32) error {
	id, params, err := readCall(r)
	if err != nil {
		return err
	}
	w := m.world
	w.Counters.CallsReceived++
	if id >= len(m.class.rpcs) {
		return fmt.Errorf("%w: %s has no procedure %d", errFormat, m.class.name, id)
	}
	local := m.class.rpcs[id].local
	if m.b == nil || local < 0 || len(w.client.pending) >= maxPendingCalls {
		w.Counters.CallsDropped++
		return nil
	}
	proc := &m.class.local.rpcs[local]
	if proc.definition().kind == serverRPC {
		return fmt.Errorf("%w: %s.%s is for servers", errFormat, m.class.name, proc.name)
	}
	value := proc.decode(&params)
	if params.Err() != nil || params.Remaining() > 0 {
		return fmt.Errorf("%w: parameters of %s.%s", errFormat, m.class.name, proc.name)
	}
	w.client.pending = append(w.client.pending, pendingCall{m, proc, frame, value})
	return nil
}

func (c *client) run(p *pendingCall) {
	if p.m.b == nil {
		c.world.Counters.CallsDropped++
		return
	}
	if err := p.proc.run(Call{World: c.world, Frame: p.frame, Now: c.world.now}, p.m.b.self, p.params); err != nil {
		c.world.Counters.CallErrors++
		if c.world.cfg.Failed != nil {
			c.world.cfg.Failed(fmt.Errorf("%s.%s: %w", p.m.class.name, p.proc.name, err))
		}
	}
}

func (c *client) call(b *Base, proc Procedure, id int, params unsafe.Pointer) error {
	m, d := b.mirror, proc.definition()
	remote := -1
	for i := range m.class.rpcs {
		if m.class.rpcs[i].local == id {
			remote = i
		}
	}
	switch {
	case !m.owned:
		return ErrNotOwner
	case remote < 0:
		return ErrNoProcedure
	case m.ch == nil:
		return ErrNotThere
	case !take(&c.limits, d, b.class.id, id, c.world.now):
		return ErrRateLimited
	case !proc.check(Call{World: c.world, Frame: c.frame, Now: c.world.now}, b.self, params):
		return ErrInvalid
	}
	k, err := encodeCall(d, remote, 0, params, c.world.scratch)
	if err != nil {
		return err
	}
	if !d.reliable {
		if !m.ch.Conn().IsNetReady() {
			return ErrSaturated
		}
		return m.send(k)
	}
	return m.queue(k)
}

func (m *mirror) send(k *call) error {
	var w bitio.Writer
	w.Reset(m.world.scratch)
	w.WriteBits(msgCall, msgBits)
	k.write(&w)
	if w.Err() != nil {
		return fmt.Errorf("%w: %w", ErrTooLarge, w.Err())
	}
	_, err := m.ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: k.def.reliable})
	if err == nil {
		m.world.Counters.CallsSent++
	}
	return err
}

func (m *mirror) queue(k *call) error {
	if len(m.calls) == 0 && m.ch.Room() > 0 {
		err := m.send(k)
		if err == nil || !errors.Is(err, channel.ErrReliableFull) {
			return err
		}
	}
	switch k.def.overflow {
	case Refuse:
		return ErrFull
	case CloseConn:
		m.ch.Conn().Fail(fmt.Errorf("%w: %s", ErrFull, m.class.name), true)
		return ErrFull
	case Coalesce:
		for i, o := range m.calls {
			if o.rpc == k.rpc {
				m.calls[i] = k
				m.world.Counters.CallsDropped++
				return nil
			}
		}
	}
	if len(m.calls) >= MaxWaitingCalls {
		if k.def.overflow != DropOldest {
			return ErrFull
		}
		m.calls = append(m.calls[:0], m.calls[1:]...)
		m.world.Counters.CallsDropped++
	}
	if len(m.calls) == 0 {
		m.world.client.speaking = append(m.world.client.speaking, m)
	}
	m.calls = append(m.calls, k)
	return nil
}

func (c *client) speak() {
	kept := c.speaking[:0]
	for _, m := range c.speaking {
		for len(m.calls) > 0 && m.ch != nil && m.ch.Room() > 0 && m.send(m.calls[0]) == nil {
			m.calls = append(m.calls[:0], m.calls[1:]...)
		}
		if m.ch == nil {
			c.world.Counters.CallsDropped += uint64(len(m.calls))
			m.calls = nil
		}
		if len(m.calls) > 0 {
			kept = append(kept, m)
		}
	}
	clear(c.speaking[len(kept):])
	c.speaking = kept
}
