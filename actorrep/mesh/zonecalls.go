package mesh

import (
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// heldCall waits for the actor's next authority.
type heldCall struct {
	m     zoneMessage
	until time.Duration
}

// maxHeldCalls bounds those that wait.
const maxHeldCalls = 1024

// Call calls an actor, whichever server's it is. The call comes once, and calls of this server in order unless the authority changes while they are under way. ErrNoActor: it isn't known
// here. ErrTooLong: above MaxMessage. ErrFull: too much waits for the other server.
func (z *Zone) Call(id netguid.GUID, call []byte) error {
	r := z.records[id]
	switch {
	case len(call) > MaxMessage:
		return ErrTooLong
	case r == nil || r.a == nil:
		return ErrNoActor
	}
	return z.route(zoneMessage{kind: zoneCall, id: id, origin: z.cfg.ID, call: call})
}

// route passes a call on to the actor's authority.
func (z *Zone) route(m zoneMessage) error {
	r := z.records[m.id]
	switch {
	case r == nil || r.ended || m.hops >= maxHops || r.owner == z.cfg.ID && r.a.body().World() != z.cfg.World: // the game has destroyed it
		return ErrNoActor
	case r.owner == z.cfg.ID:
		z.cfg.Game.Call(r.a, m.origin, m.call)
		return nil
	case r.owner == "":
		if len(z.held) >= maxHeldCalls {
			return ErrFull
		}
		m.call = slices.Clone(m.call)
		z.held = append(z.held, heldCall{m, z.now + z.cfg.Forget})
		return nil
	}
	if n := z.neighbour(r.owner); n != nil && n.fills(2) {
		return ErrFull
	}
	m.hops++
	return z.push(r.owner, &m)
}

// bounce tells a caller that its call reached nobody.
func (z *Zone) bounce(m zoneMessage) {
	if m.origin == z.cfg.ID {
		z.cfg.Game.Undelivered(m.id, m.call)
		return
	}
	i, known := z.find(m.origin)
	if !known && !z.servers[m.origin] || known && z.neighbours[i].fills(3) || z.push(m.origin, &zoneMessage{kind: zoneBack, id: m.id, call: m.call}) != nil {
		z.Counters.CallsLost++
	}
}
