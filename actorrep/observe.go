package actorrep

import (
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/channel"
)

// observe notes a record for the observer, while what it is made of is in the cache.
func (p *Peer) observe(v *view, r *record) {
	why := ""
	switch r.why {
	case ReasonStarved, ReasonLost, ReasonNoRoom:
		why = r.why.String()
	}
	p.batch.observed = append(p.batch.observed, bridge.Sent{Actor: v.b.guid, Units: r.mask, Waited: why})
}

// tellSent says which records a packet carries, and which unreliable calls.
func (p *Peer) tellSent(packet int64, ch chunk) {
	o, ok := p.out.(*channelOutlet)
	if !ok {
		return
	}
	t := &p.batch
	from := t.chunks[0].first
	p.world.observer.Sent(o.conn, packet, t.observed[ch.first-from:ch.end-from])
	for ; t.told < min(ch.said, len(t.saidBy)); t.told++ {
		t.saidBy[t.told].tellCalls(o.conn, packet, t.said[t.told:t.told+1])
	}
}

// tellReliable says which reliable calls were sent right now.
func (v *view) tellReliable(calls []*call) {
	if o, ok := v.peer.out.(*channelOutlet); ok && v.peer.world.observer != nil {
		v.tellCalls(o.conn, o.packet, calls)
	}
}

func (v *view) tellCalls(conn channel.Conn, packet int64, calls []*call) {
	for _, c := range calls {
		if c.rpc < len(v.b.class.rpcs) { // the others are this package's own
			v.peer.world.observer.Called(bridge.Call{Conn: conn, Actor: v.b.guid, Packet: packet, Class: v.b.class.name, Procedure: c.name, Reliable: c.def.reliable})
		}
	}
}

// tellCame says that a client's call came. why says why it doesn't run.
func (p *Peer) tellCame(b *Base, proc *procedure, why string) {
	if o := p.world.observer; o != nil {
		o.Called(bridge.Call{Conn: p.Conn(), Actor: b.guid, Class: b.class.name, Procedure: proc.name, Reliable: proc.definition().reliable, Came: true, Refused: why})
	}
}

// tellCalled says that a client has sent a call in a packet, or, with packet 0, that one came from the server. why says why that doesn't run.
func (m *mirror) tellCalled(packet int64, procedure string, reliable bool, why string) {
	w := m.world
	if w.observer != nil {
		w.observer.Called(bridge.Call{Conn: w.Conn(), Actor: m.guid, Packet: packet, Class: m.class.name, Procedure: procedure, Reliable: reliable,
			Came: packet == 0, Refused: why})
	}
}

// tellCorrected says that a prediction was corrected.
func (w *World) tellCorrected(a Actor, p *Peer, size float64, off []string) {
	if w.observer == nil {
		return
	}
	conn := w.Conn()
	if p != nil {
		conn = p.Conn()
	}
	w.observer.Corrected(conn, a.base().guid, size, off)
}
