package actorrep

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// Peer is a client's connection as a server's world sees it.
type Peer struct {
	// User is the game's.
	User any

	world *World
	table *channel.Table
	conn  channel.Conn
	views map[Actor]*view
	next  int // the actor at which the next tick begins
}

// AddConn replicates the world to a connection from now on.
func (w *World) AddConn(conn channel.Conn) *Peer {
	p := &Peer{world: w, table: conn.Table(), conn: conn, views: map[Actor]*view{}}
	w.peers = append(w.peers, p)
	return p
}

// RemoveConn ends that. Actors it owned are nobody's.
func (w *World) RemoveConn(p *Peer) {
	for i, q := range w.peers {
		if q == p {
			w.peers = append(w.peers[:i], w.peers[i+1:]...)
			break
		}
	}
	for _, a := range w.actors {
		if a.base().owner == p {
			a.base().owner = nil
		}
	}
}

// Len is the number of actors the client has been told of.
func (p *Peer) Len() int { return len(p.views) }

// maxInFlight bounds the updates of an actor whose packets may still be lost. With more, all of
// them are sent again as one.
const maxInFlight = 32

// view is an actor as one connection knows it. It handles the actor's channel.
//
// Invariant: every change up to cursor is in dirty, or in sent, or has arrived, or was
// never allowed and is in dirty.
type view struct {
	peer     *Peer
	actor    Actor
	ch       *channel.Channel
	cursor   int64       // change count it has come to
	dirty    layout.Mask // to be sent
	owner    bool        // the connection was the owner's when it was sent to last
	sent     [maxInFlight]sentUpdate
	head, n  int
	relevant time.Duration // when it was relevant last
}

type sentUpdate struct {
	packets channel.PacketRange
	mask    layout.Mask
	lost    bool
}

// replicate writes what the connection is to know, until its bandwidth is used up; the next tick
// begins where this one stopped.
func (p *Peer) replicate() {
	actors := p.world.actors
	n := len(actors)
	if p.next >= n {
		p.next = 0
	}
	for i := range n {
		if !p.conn.IsNetReady() {
			p.world.Counters.Saturated++
			p.next = (p.next + i) % n
			return
		}
		p.replicateActor(actors[(p.next+i)%n])
	}
}

func (p *Peer) replicateActor(a Actor) {
	w := p.world
	v := p.views[a]
	if w.cfg.Relevant != nil && !w.cfg.Relevant(p, a) {
		if v != nil && w.now-v.relevant > w.cfg.RelevantTimeout {
			p.close(a, bunch.Relevancy)
		}
		if v == nil {
			return
		}
	} else if v != nil {
		v.relevant = w.now
	}
	if v == nil {
		p.open(a)
		return
	}
	v.update()
}

// open makes the actor's channel and sends its first bunch.
func (p *Peer) open(a Actor) {
	w, b := p.world, a.base()
	v := &view{peer: p, actor: a, relevant: w.now}
	ch, err := p.table.Open(bunch.Actor, v)
	if err != nil {
		w.Counters.Delayed++
		return
	}
	v.ch, v.cursor, v.owner = ch, b.rep.count, b.owner == p
	l := b.class.layout
	values := l.NonZero(b.rep.shadow)
	allowed := l.Allowed(v.owner, true)
	var bw bitio.Writer
	bw.Reset(w.scratch)
	bw.WriteIntPacked(uint32(b.guid))
	bw.WriteIntPacked(uint32(b.class.id))
	bw.WriteUint32(l.Hash)
	l.Write(&bw, b.rep.shadow, values&allowed)
	if _, ok := v.send(&bw, true); !ok {
		w.Counters.Delayed++
		_ = ch.Close(bunch.Destroyed) // it was never sent
		return
	}
	v.dirty = values &^ allowed
	p.views[a] = v
	w.Counters.Opened++
}

// update sends what the client doesn't know and may.
func (v *view) update() {
	w, b := v.peer.world, v.actor.base()
	l := b.class.layout
	if v.cursor != b.rep.count {
		v.dirty |= b.rep.since(v.cursor, l.All())
		v.cursor = b.rep.count
	}
	owner := b.owner == v.peer
	if owner != v.owner {
		v.owner = owner
		v.dirty |= l.Allowed(owner, false) &^ l.Allowed(!owner, false) // what the other condition hid
	}
	m := v.dirty & l.Allowed(owner, false)
	// Until the open is acked nothing more is sent: it may have to go again, and would bring
	// old values after new ones.
	if m == 0 || !v.ch.OpenAcked() || v.ch.ReplicationPaused() || v.ch.Closing() {
		return
	}
	if v.n == maxInFlight {
		v.giveUp()
		m = v.dirty & l.Allowed(owner, false)
	}
	var bw bitio.Writer
	bw.Reset(w.scratch)
	l.Write(&bw, b.rep.shadow, m)
	r, ok := v.send(&bw, false)
	if !ok {
		return // stays dirty
	}
	v.dirty &^= m
	v.sent[(v.head+v.n)%maxInFlight] = sentUpdate{packets: r, mask: m}
	v.n++
	w.Counters.Updates++
	w.Counters.UpdateBits += uint64(bw.Len())
}

// send reports whether the bunch went out, or waits reliably.
func (v *view) send(bw *bitio.Writer, reliable bool) (channel.PacketRange, bool) {
	if bw.Err() != nil {
		return channel.PacketRange{}, false // larger than any bunch
	}
	r, err := v.ch.SendBunch(&bunch.Out{Data: bw.Bytes(), Bits: bw.Len(), Reliable: reliable, NoMerge: true})
	return r, err == nil
}

// giveUp takes all updates in flight for lost.
func (v *view) giveUp() {
	for ; v.n > 0; v.n-- {
		v.dirty |= v.sent[v.head].mask
		v.head = (v.head + 1) % maxInFlight
	}
}

// ReceivedBunch ignores what a client sends on an actor's channel: property data is never accepted.
func (v *view) ReceivedBunch(*channel.Channel, *bunch.In) { v.peer.world.Counters.Bad++ }

// ReceivedAck retires the updates that have arrived.
func (v *view) ReceivedAck(_ *channel.Channel, id int64) { v.settle(id, false) }

// ReceivedNak makes the values of lost updates dirty again. What is sent then is their value then.
func (v *view) ReceivedNak(_ *channel.Channel, id int64) { v.settle(id, true) }

// settle takes the fate of a packet. Fates come in order, so updates end in order. Of a lost update
// only what no later one in flight carries is sent again.
func (v *view) settle(id int64, lost bool) {
	for i := range v.n {
		if s := &v.sent[(v.head+i)%maxInFlight]; lost && s.packets.First <= id && id <= s.packets.Last {
			s.lost = true
		}
	}
	for v.n > 0 && v.sent[v.head].packets.Last <= id {
		s := v.sent[v.head]
		v.head = (v.head + 1) % maxInFlight
		v.n--
		if !s.lost {
			continue
		}
		v.peer.world.Counters.Resent++
		for i := range v.n {
			s.mask &^= v.sent[(v.head+i)%maxInFlight].mask
		}
		v.dirty |= s.mask
	}
}

// Closed forgets the view: the close is acked, or the connection has ended.
func (v *view) Closed(*channel.Channel, channel.CloseReason) {
	if v.peer.views[v.actor] == v {
		delete(v.peer.views, v.actor)
	}
}

// close makes the actor disappear from the client. Should it become relevant again, it gets a new
// channel at once.
func (p *Peer) close(a Actor, reason channel.CloseReason) {
	v := p.views[a]
	if v == nil {
		return
	}
	if v.ch.Close(reason) == nil {
		delete(p.views, a)
		p.world.Counters.Closed++
	}
}
