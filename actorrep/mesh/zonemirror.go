package mesh

import (
	"fmt"
	"math"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel"
)

// Accept replicates this server's actors of the margin to the connection of a neighbour, instead of World.AddConn. Who it is, is the connection's to
// prove. Call World.RemoveConn when it has ended.
func (z *Zone) Accept(id string, conn channel.Conn) *actorrep.Peer {
	p := addConnByHand(z.cfg.World, conn)
	if n := z.neighbour(id); n != nil {
		for _, r := range z.list {
			if n.peer != nil && r.a != nil { // its former connection sees nothing any more
				n.peer.SetRelevant(r.a, false)
			}
		}
		n.peer = p
		z.changes++
	}
	return p
}

// Mirror has the actors of a neighbour mirrored: w is the client's world of the connection to it, with the same classes as World. Step it before the Zone.
// nil: the connection has ended.
func (z *Zone) Mirror(id string, w *actorrep.World) {
	n := z.neighbour(id)
	if n == nil {
		return
	}
	n.world, n.fresh = w, nil
	if w != nil {
		w.OnValues(func(a actorrep.Actor) {
			if n.world == w && (len(n.fresh) == 0 || n.fresh[len(n.fresh)-1] != a) {
				n.fresh = append(n.fresh, a)
			}
		})
	}
}

// stepOther forgets an actor of another server that nobody shows any more.
func (z *Zone) stepOther(r *record) {
	z.look(r)
	if i, ok := z.find(r.owner); ok && !r.ended && shows(z.neighbours[i], r) {
		r.shownAt = z.now
		return
	}
	if z.now-r.shownAt <= z.cfg.Forget && (!r.seen || r.a == nil || !z.beyond(r.a)) {
		return
	}
	if r.a != nil {
		z.unmirror(r)
	}
	for _, n := range z.neighbours { // else its old values would be taken for new ones
		if n.world != nil && n.world.Find(r.id) != nil {
			return
		}
	}
	z.drop(r)
}

// beyond reports whether a mirror has left the margin.
func (z *Zone) beyond(a Actor) bool {
	x, y, _ := a.Location()
	z.measure(x, y, z.cfg.Margin)
	return math.IsInf(distanceOf(z.wide, z.cfg.ID), 1)
}

// look forgets a mirror that the game has destroyed.
func (z *Zone) look(r *record) {
	if r.a != nil && r.a.body().World() != z.cfg.World {
		r.a = nil
	}
}

// shows reports whether a server shows the actor as its own.
func shows(n *neighbour, r *record) bool {
	if n.world == nil {
		return false
	}
	a, ok := n.world.Find(r.id).(Actor)
	return ok && a.body().Epoch == r.epoch
}

func (z *Zone) unmirror(r *record) {
	_ = z.cfg.World.Destroy(r.a)
	r.a = nil
}

// mirror takes the values of an actor that a neighbour shows.
func (z *Zone) mirror(n *neighbour, from actorrep.Actor) {
	if b := baseOf(from); b.Parent() != nil && b.World() == n.world {
		z.fail(b.ClassName(), "class %q is one of components, here of a %q: neighbours don't mirror it, and their players don't see it", b.ClassName(), baseOf(b.Parent()).ClassName())
		return
	}
	src, ok := from.(Actor)
	if !ok || src.body().World() != n.world {
		return
	}
	id, epoch := src.body().GUID(), src.body().Epoch
	r := z.records[id]
	switch {
	case epoch == 0 || epoch >= maxEpoch || r == nil && len(z.list) >= z.cfg.MaxActors:
		z.Counters.Refused++
		return
	case r == nil:
		r = z.add(id)
		r.owner, r.epoch = n.id, epoch
	case epoch < r.epoch || r.ended && epoch == r.epoch:
		z.Counters.Stale++
		return
	case r.owner == z.cfg.ID && epoch == r.epoch: // an epoch is of one authority
		z.fail("", "server %q has an actor with id %v as this one has, both new: each start of a server needs a share of ids of its own (actorrep.Config.IDs)", n.id, id)
		z.Counters.Refused++
		return
	case r.owner == z.cfg.ID || epoch == r.epoch && r.owner != n.id:
		z.Counters.Refused++
		return
	case epoch > r.epoch:
		r.owner, r.epoch, r.ended = n.id, epoch, false
	}
	z.look(r)
	if r.a == nil && !z.spawn(r, src.body().ClassName()) || !z.copier.copy(r.a, src) {
		z.Counters.Refused++
	}
	r.seen = true
}

// fail tells World's Config.Failed once of a class that is registered here, or of what has no class, what players don't see because of it.
func (z *Zone) fail(class, format string, args ...any) {
	if z.reported[class] || class != "" && z.copier.layouts[class] == nil {
		return
	}
	z.reported[class] = true
	report(z.cfg.World, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
}

// spawn makes the mirror of an actor.
func (z *Zone) spawn(r *record, class string) bool {
	a := z.cfg.Game.Make(class)
	if a == nil {
		z.fail(class, "ZoneGame.Make makes no %q, which other servers have", class)
		return false
	}
	if z.cfg.World.SpawnAs(a, nil, r.id) != nil {
		return false
	}
	if made := a.body().ClassName(); made != class || z.copier.check(class) != nil {
		z.fail(class, "ZoneGame.Make has made a %q for a %q, or its class was registered after NewZone", made, class)
		_ = z.cfg.World.Destroy(a)
		return false
	}
	r.a, r.shownAt = a, z.now
	return true
}
