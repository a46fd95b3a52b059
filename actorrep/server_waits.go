package actorrep

import (
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/channel"
)

// waitPairs is how many pairs of a connection and an actor a Step looks at. A wait for bandwidth is told of from longWait Steps on.
const (
	waitPairs = 256
	longWait  = 6
)

// waitSearch is how far the search for what waits has come. It goes through the actors once for what holds for all connections, then once for each connection.
type waitSearch struct {
	turn  int   // 0 for all connections, or one more than the peer's place in World.peers
	peer  *Peer // at that place; nil for all
	actor int   // the next one's place in World.actors
}

// lookForWaits tells the observer, for the next pairs in turn, why a connection lacks an actor or some of its values.
func (w *World) lookForWaits() {
	s := &w.waits
	most := min(waitPairs, (len(w.actors)+1)*(len(w.peers)+1))
	for n := 0; n < most && w.observer.Room(); n++ {
		if s.turn > len(w.peers) || s.turn > 0 && w.peers[s.turn-1] != s.peer || s.peer != nil && !s.peer.mayWait() {
			w.nextWaits()
			continue
		}
		if s.actor >= len(w.actors) {
			var conn channel.Conn
			if s.peer != nil {
				conn = s.peer.Conn()
			}
			w.observer.Waited(conn)
			w.nextWaits()
			continue
		}
		b := w.actors[s.actor]
		s.actor++
		switch {
		case b == nil:
		case s.peer == nil:
			w.tellWaitsOfAll(b)
		default:
			s.peer.tellWaits(b)
		}
	}
}

// nextWaits goes on with the next connection.
func (w *World) nextWaits() {
	s := &w.waits
	s.turn, s.actor, s.peer = s.turn+1, 0, nil
	if s.turn > len(w.peers) {
		s.turn = 0
	}
	if s.turn > 0 {
		s.peer = w.peers[s.turn-1]
	}
}

// mayWait reports whether there is a client that the connection sends to.
func (p *Peer) mayWait() bool { return p.Conn() != nil && !p.ended() }

// tellWaitsOfAll tells what holds for all connections.
func (w *World) tellWaitsOfAll(b *Base) {
	wait, dormant, inactive := bridge.Wait{Actor: b.guid}, ReasonNone, ReasonNone
	if b.dormant {
		dormant = ReasonDormant
	}
	if b.inactive != 0 {
		inactive = ReasonInactive
	}
	w.tellWait(wait, dormant, nil, b)
	wait.Some, wait.Units = true, b.inactive
	w.tellWait(wait, inactive, nil, b)
}

// tellWaits tells why the connection lacks an actor, or some of its values.
func (p *Peer) tellWaits(b *Base) {
	w, e, wait := p.world, Explanation{}, bridge.Wait{Conn: p.Conn(), Actor: b.guid}
	v := w.explainPeer(&e, p, b)
	if v != nil && v.lacks() {
		v.explain(&e, b.class.layout.All())
	}
	switch e.Reason {
	case ReasonUnfit:
		wait.Units = (b.rep.shadow.Unfit | p.oversize[v]) & v.allowed
	case ReasonUpToDate, ReasonSent, ReasonInFlight, ReasonTornOff, ReasonDormant, ReasonUnmarked: // it has it, or that is told elsewhere
		e.Reason = ReasonNone
	case ReasonOpening:
		if v.flags&unfinished == 0 {
			e.Reason = ReasonNone
		}
	}
	w.tellWait(wait, e.Reason, p, b)
	refs := b.class.layout.Refs
	if refs == 0 {
		return
	}
	wait.Some, wait.Units = true, 0
	reason := ReasonNone
	for ; v != nil && v.state == open && refs != 0; refs &= refs - 1 {
		if m := refs & -refs & v.allowed &^ v.dirty; m != 0 && v.unmapped(m) != 0 {
			wait.Units |= m
			reason = ReasonUnmapped
		}
	}
	w.tellWait(wait, reason, p, b)
}

// lacks reports whether the client may lack something, for longer than some Steps.
func (v *view) lacks() bool {
	switch {
	case v.state != open:
		return v.state != asleep || v.wakes()
	case !v.relevant || v.b.rep.shadow.Unfit&v.allowed != 0 || v.peer.oversize[v] != 0:
		return true
	case v.flags&(pending|inTurns) != 0:
		return v.peer.world.frame-v.since >= longWait
	}
	return v.dirty&v.allowed != 0 && v.every > longWait
}

// tellWait tells of one, and why in words when these are asked for: an actor's Explain, or of some units their fields'.
func (w *World) tellWait(wait bridge.Wait, reason Reason, p *Peer, b *Base) {
	wait.Reason = uint8(reason)
	switch {
	case !w.observer.Waits(wait):
	case p == nil:
		w.observer.Why(wait, reason.String())
	case wait.Some:
		v := p.views[b]
		w.observer.Why(wait, fmt.Sprintf("sent, but %v isn't at the client", v.unmapped(wait.Units)))
	default:
		w.observer.Why(wait, w.explanation(p, b).Text)
	}
}
