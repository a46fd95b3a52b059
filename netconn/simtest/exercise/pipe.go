package exercise

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

var pipeName = bunch.Name{Index: 300}

// pipe is one end of a channel of bunches.
type pipe struct {
	e           *end
	ch          *channel.Channel
	out         [2]*stream // unreliable, reliable
	in          [2]*stream // nil until something has come
	temporary   bool
	closing     bool // by us
	gone        bool
	lastFate    int64
	writeBuffer []byte
}

func (e *end) newPipe(ch *channel.Channel) *pipe {
	p := &pipe{e: e, ch: ch, lastFate: -1 << 62}
	p.out[0] = e.newStream("unreliable bunches", simtest.AtMostOnce)
	p.out[1] = e.newStream("reliable bunches", simtest.InOrder)
	e.pipes = append(e.pipes, p)
	return p
}

func (e *end) acceptPipe(ch *channel.Channel) channel.Handler { return e.newPipe(ch) }

// openPipe opens a channel; its first bunch is reliable, or it is a temporary one.
func (e *end) openPipe() {
	p := e.newPipe(nil)
	ch, err := e.conn.Open(pipeName, p)
	if err != nil {
		e.pipes = e.pipes[:len(e.pipes)-1]
		if !errors.Is(err, channel.ErrNoIndex) {
			e.g.w.Failf("bounds", "%v: open: %v", e, err)
		}
		return
	}
	p.ch = ch
	if p.temporary = e.p.rng.IntN(8) == 0; p.temporary {
		out := p.payload(p.out[0], 100)
		_, err = ch.SendTemporary(&out)
		if err != nil {
			_ = ch.Close(bunch.Destroyed)
		}
		return
	}
	p.send(true, 200)
}

// tick sends something, or not.
func (p *pipe) tick() {
	if p.gone || p.closing || p.temporary || p.e.g.calm || !p.e.conn.IsNetReady() {
		return
	}
	r := p.e.p.rng
	for range r.IntN(3) {
		p.send(r.IntN(3) > 0, p.size())
	}
}

// size is a payload's bits: mostly few, sometimes of many packets.
func (p *pipe) size() int {
	r := p.e.p.rng
	switch n := r.IntN(200); {
	case n == 0:
		return r.IntN(300_000)
	case n < 10:
		return r.IntN(30_000)
	}
	return r.IntN(1500)
}

func (p *pipe) send(reliable bool, bits int) {
	if reliable && p.ch.Room() < bits/p.e.g.opt.partBits()+2 {
		return
	}
	i := 0
	if reliable {
		i = 1
	}
	out := p.payload(p.out[i], bits)
	_, err := p.ch.SendBunch(&out)
	switch {
	case err == nil || !reliable && errors.Is(err, channel.ErrNotSent):
	case !p.e.alive(): // the connection ended meanwhile
	default:
		p.e.g.w.Failf("bounds", "%v on %v: a bunch of %d bits: %v", p.e, p.ch, out.Bits, err)
	}
}

// ReceivedBunch is the channel's: payloads, several when bunches were merged.
func (p *pipe) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	g := p.e.g
	if p.gone || p.e.result != nil || p.e.crashed {
		g.w.Failf("close", "%v: a bunch on %v after its end", p.e, ch)
		return
	}
	for in.Data.Remaining() > 0 && g.w.Failure() == nil {
		s, n, ok := p.read(&in.Data)
		if !ok {
			return
		}
		i := 0
		if s.reliable() {
			i = 1
		}
		if s.reliable() && !in.Reliable {
			g.w.Failf("order", "%v: %v in an unreliable bunch", p.e, s)
		}
		p.e.received(s, n, &p.in[i])
	}
}

// ReceivedAck is the channel's.
func (p *pipe) ReceivedAck(_ *channel.Channel, id int64) { p.fate(id) }

// ReceivedNak is the channel's.
func (p *pipe) ReceivedNak(_ *channel.Channel, id int64) { p.fate(id) }

func (p *pipe) fate(id int64) {
	if id <= p.lastFate || p.gone {
		p.e.g.w.Failf("fates", "%v on %v heard of packet %d after %d", p.e, p.ch, id, p.lastFate)
	}
	p.lastFate = id
}

// Closed is the channel's.
func (p *pipe) Closed(ch *channel.Channel, _ channel.CloseReason) {
	if p.gone {
		p.e.g.w.Failf("close", "%v: %v closed twice", p.e, ch)
	}
	p.gone = true
	if p.e.alive() && !p.closing && !p.temporary && p.in[1] != nil && p.in[1].Missing() > 0 {
		p.e.g.w.Failf("close", "%v: %v was closed before all had come of %v", p.e, ch, p.in[1])
	}
	p.void()
}

func (p *pipe) void() {
	for i := range p.out {
		if p.out[i] != nil {
			p.out[i].Void()
		}
	}
}

// churn closes channels that this end opened, and opens others.
func (e *end) churn() {
	kept, mine := e.pipes[:0], 0
	for _, p := range e.pipes {
		if p.gone {
			continue
		}
		kept = append(kept, p)
		if p.ch.OpenedLocally() {
			mine++
			if !e.g.calm && !p.closing && !p.temporary && e.perSecond(e.g.opt.churn) && p.ch.Close(bunch.Destroyed) == nil {
				p.closing = true
			}
		}
	}
	clear(e.pipes[len(kept):])
	e.pipes = kept
	if !e.g.calm && mine < e.g.opt.bunches && (e.opens() || !e.g.opt.serverOpens()) {
		e.openPipe()
	}
}

// pending is what must still arrive from this end.
func (p *pipe) pending() string {
	if p.gone || p.closing || p.temporary {
		return ""
	}
	if n := p.out[1].Missing(); n > 0 {
		return fmt.Sprintf("%d missing of %v", n, p.out[1])
	}
	return ""
}
