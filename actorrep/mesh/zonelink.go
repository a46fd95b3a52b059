package mesh

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// neighbour is another server.
type neighbour struct {
	id    string
	peer  *actorrep.Peer  // its connection here
	world *actorrep.World // the client's world of our connection there
	fresh []actorrep.Actor
	out   stream
	given int           // bytes of actors in out, as of the last Step
	next  uint64        // number of its next message
	sayAt time.Duration // 0: there is news
	ackAt time.Duration // when it last acknowledged something, or had nothing to

	// Of Keepers: rounds of asking to go on without the store. 0: none.
	ask     uint64 // this server asks
	granted uint64 // it has said yes
	heard   uint64 // it asks
	ready   uint64 // heard before the last Step of the Keeper
	leave   uint64 // this server has said yes
	greeted bool   // it knows that this server asks it
	asks    bool   // it asks this server
}

// maxNeighbours bounds the other servers that a Zone knows.
const maxNeighbours = netguid.MaxServers

// Gone: a server has certainly stopped. Actors that it had are lost, and their mirrors go. No actor is given to it any more.
func (z *Zone) Gone(id string) {
	z.gone[id] = true
	i, ok := z.find(id)
	if !ok {
		return
	}
	n := z.neighbours[i]
	z.neighbours = slices.Delete(z.neighbours, i, i+1)
	var m zoneMessage
	for _, b := range n.out.waiting {
		switch m.read(b); m.kind {
		case zoneGive:
			z.Counters.Lost++
		case zoneCall:
			z.bounce(m)
		}
	}
}

// push has a message sent to a server.
func (z *Zone) push(to string, m *zoneMessage) error {
	n := z.neighbour(to)
	if n == nil {
		return ErrGone
	}
	z.msg = m.append(z.msg[:0])
	if len(n.out.waiting) == 0 {
		n.ackAt = z.now
	}
	err := n.out.push(z.msg)
	n.sayAt = 0
	return err
}

// fills reports whether more than so many quarters wait: two are for calls and actors, a third one for calls that come back, so that there is room to return an actor.
func (n *neighbour) fills(quarters int) bool {
	return len(n.out.waiting) > maxZoneWaiting*quarters/4 || n.out.bytes > maxZoneWaitingBytes*quarters/4
}

func (z *Zone) find(id string) (int, bool) {
	return slices.BinarySearchFunc(z.neighbours, id, func(n *neighbour, id string) int { return cmp.Compare(n.id, id) })
}

// neighbour returns another server; nil when it is gone, or there are too many.
func (z *Zone) neighbour(id string) *neighbour {
	i, ok := z.find(id)
	switch {
	case ok:
		return z.neighbours[i]
	case z.gone[id] || id == "" || id == z.cfg.ID || len(id) > maxID || len(z.neighbours) >= maxNeighbours:
		return nil
	}
	n := &neighbour{id: id, out: stream{servers: true, first: 1}, next: 1, sayAt: z.now + z.cfg.Resend}
	z.neighbours = slices.Insert(z.neighbours, i, n)
	return n
}

// say sends a neighbour what waits for it, and acknowledges.
func (z *Zone) say(n *neighbour) {
	n.sayAt = z.now + z.cfg.Resend
	z.buf = n.out.append(binary.AppendUvarint(z.buf[:0], n.next), zonePackBytes)
	if n.ask|n.leave != 0 {
		z.buf = binary.AppendUvarint(binary.AppendUvarint(z.buf, n.ask), n.leave)
	}
	if sealed := z.seal.close(n.id, z.buf); sealed != nil {
		z.cfg.ToServer(n.id, sealed)
	}
}

// Receive takes a packet that the Zone of server from has sent. ErrForged: it has not, or not to this server, or the packet was changed; Counters.Forged
// counts these.
func (z *Zone) Receive(from string, packet []byte) error {
	opened, ok := z.seal.open(from, packet)
	if !ok {
		z.Counters.Forged++
		return ErrForged
	}
	n := z.neighbour(from)
	if n == nil || z.stopped {
		return nil // it is gone, or this one is over
	}
	r := reader{b: opened}
	next := r.number()
	first, msgs := r.messages(z.msgs[:0], ofServers)
	z.msgs = msgs[:0]
	var ask, granted uint64
	if len(r.b) > 0 {
		ask, granted = r.number(), r.number()
		r.bad = r.bad || z.keeper == nil || granted > z.keeper.mine.away.round
	}
	waited, more := len(n.out.waiting), n.out.bytes > zonePackBytes // than went into the last packet
	if !r.end() || first == 0 || len(opened) > maxZonePacket || !n.out.ack(next) {
		z.Counters.Malformed++
		return errPacket
	}
	if len(n.out.waiting) < waited {
		n.ackAt = z.now
		if more {
			n.sayAt = 0
		}
	}
	if len(msgs) > 0 || ask > 0 && ask <= n.leave {
		n.sayAt = 0
	}
	n.heard, n.granted = max(n.heard, ask), max(n.granted, granted)
	for i, b := range msgs {
		if first+uint64(i) != n.next {
			continue
		}
		n.next++
		var m zoneMessage
		if !m.read(b) {
			z.Counters.Malformed++
			return errPacket
		}
		z.heard(n, &m)
	}
	return nil
}

// heard takes a message. Each comes once, in order.
func (z *Zone) heard(n *neighbour, m *zoneMessage) {
	r := z.records[m.id]
	switch m.kind {
	case zoneGive:
		if !z.take(n, r, m) {
			z.Counters.Refused++
			if z.push(n.id, &zoneMessage{kind: zoneNo, id: m.id, epoch: m.epoch, class: m.class, state: m.state}) != nil {
				z.Counters.Lost++
			}
		}
	case zoneNo:
		z.returned(n, r, m)
	case zoneCall:
		if r == nil || r.owner != z.cfg.ID {
			z.Counters.Forwarded++
		}
		if z.route(*m) != nil {
			z.bounce(*m)
		}
	case zoneBack:
		z.cfg.Game.Undelivered(m.id, m.call)
	case zoneDeal, zoneWanted, zoneTaken, zoneSettled:
		if z.keeper != nil {
			z.keeper.dealt(m)
		}
	case zoneAsks:
		n.asks = true
	case zoneEnded:
		if r == nil || r.owner != n.id || r.epoch != m.epoch {
			return
		}
		r.ended, r.shownAt = true, z.now
		if r.a != nil {
			z.unmirror(r)
		}
	}
}
