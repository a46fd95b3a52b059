package mesh

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// stepOwn looks where an actor of this server is.
func (z *Zone) stepOwn(r *record) {
	if b := r.a.body(); b.World() != z.cfg.World || b.TornOff() { // the game has destroyed it
		for _, n := range z.neighbours {
			if n.peer != nil {
				_ = z.push(n.id, &zoneMessage{kind: zoneEnded, id: r.id, epoch: r.epoch}) // without room its mirrors stay for Forget
			}
		}
		if z.keeper != nil {
			z.keeper.destroyed(r)
		}
		r.a, r.owner, r.ended, r.shownAt = nil, "", true, z.now
		return
	}
	x, y, _ := r.a.Location()
	if r.x == x && r.y == y && r.looked == z.changes || z.leaving {
		return
	}
	r.x, r.y, r.looked = x, y, z.changes
	reach := z.cfg.Margin + z.cfg.Hysteresis
	z.measure(x, y, reach)
	if distanceOf(z.around, z.cfg.ID) > z.cfg.Hysteresis {
		if z.give(r, z.table.At(x, y)) {
			return
		}
		r.looked = 0
	}
	margin := z.cfg.Margin
	if !r.placed { // who mirrors it beyond that goes on
		r.placed, margin = true, reach
	}
	for _, n := range z.neighbours {
		if n.peer == nil {
			continue
		}
		d, shown := distanceOf(z.wide, n.id), n.peer.IsRelevant(r.a)
		switch {
		case d <= margin && !shown:
			n.peer.SetRelevant(r.a, true)
			if !n.peer.IsRelevant(r.a) {
				r.looked = 0 // later
			}
		case d > reach && shown:
			n.peer.SetRelevant(r.a, false)
		}
	}
}

// keeps reports whether a server keeps an actor of its own at a place: there is a zone of its within Hysteresis.
func (z *Zone) keeps(server string, x, y float64) bool {
	z.around = z.table.near(z.around[:0], x, y, z.cfg.Hysteresis)
	return distanceOf(z.around, server) <= z.cfg.Hysteresis
}

// measure finds how far a place is from the zones that are within reach of it.
func (z *Zone) measure(x, y, reach float64) {
	z.around = z.table.near(z.around[:0], x, y, reach)
	z.wide = z.past.near(&z.table, append(z.wide[:0], z.around...), x, y, reach)
	for i := range z.formers {
		f := &z.formers[i]
		z.wide = f.past.near(&f.Table, f.near(z.wide, x, y, reach), x, y, reach)
	}
}

// distanceOf is how far the place that was measured is from a server's zone.
func distanceOf(all []distance, server string) float64 {
	for i := range all {
		if all[i].server == server {
			return all[i].d
		}
	}
	return math.Inf(1)
}

// hide has no server see the actor as this one's.
func (z *Zone) hide(r *record) {
	for _, n := range z.neighbours {
		if n.peer != nil {
			n.peer.SetRelevant(r.a, false)
		}
	}
}

// answers reports whether a server acknowledges what it is sent.
func (z *Zone) answers(n *neighbour) bool {
	return len(n.out.waiting) == 0 || z.now-n.ackAt <= 5*z.cfg.Resend
}

// give gives an actor to another server. It reports whether it is that one's now.
func (z *Zone) give(r *record, to string) bool {
	n := z.neighbour(to)
	switch {
	case z.keeper != nil && !(z.keeper.recorded(r) && z.keeper.hasLease(to)):
		return false // later
	case n == nil || r.epoch >= maxEpoch-1 || z.table.Epoch < r.table || z.now < r.giveAt:
		return false
	case !z.answers(n) || n.fills(2) || n.given+maxZoneMessage > zonePackBytes || z.gives >= maxGives:
		return false // later: nobody plays it until the other server has it, so it is to go with the next packet
	}
	z.gives++
	state, ok := z.cfg.Game.Give(r.a, to)
	switch {
	case !ok || r.owner != z.cfg.ID:
		z.gives--
		return r.owner != z.cfg.ID // the game has released it
	case len(state) > MaxActorState:
		z.Counters.TooLong++
		r.giveAt = z.now + time.Second
		z.takeBack(r, state)
		return false
	}
	z.hide(r)
	r.owner, r.epoch, r.shownAt = to, r.epoch+1, z.now
	r.a.body().Epoch = r.epoch
	if z.keeper != nil {
		z.keeper.goes(r, to, r.epoch, state)
	}
	z.Counters.Given++
	_ = z.push(to, &zoneMessage{kind: zoneGive, id: r.id, epoch: r.epoch, table: z.table.Epoch, class: r.a.body().ClassName(), state: state}) // there is room
	n.given += len(z.msg) + 2
	return true
}

// takeBack has the game play an actor on that it had given.
func (z *Zone) takeBack(r *record, state []byte) {
	if err := z.cfg.Game.Take(r.a, state); err != nil {
		_ = z.cfg.World.Destroy(r.a)
	}
}

// returned takes an actor back that another server didn't take. It may have been forgotten here meanwhile.
func (z *Zone) returned(n *neighbour, r *record, m *zoneMessage) {
	if r == nil {
		if len(z.list) >= z.cfg.MaxActors {
			z.Counters.Lost++
			return
		}
		r = z.add(m.id)
		r.owner, r.epoch = n.id, m.epoch
	}
	if r.owner != n.id || r.epoch != m.epoch {
		z.Counters.Refused++
		return
	}
	z.look(r)
	if r.a == nil && !z.spawn(r, m.class) {
		z.Counters.Refused++
		return
	}
	z.own(r, m.epoch+1)
	r.giveAt = z.now + time.Second
	z.Counters.Returned++
	z.takeBack(r, m.state)
}

// take takes an actor that another server gives. It reports whether it is this one's now.
func (z *Zone) take(n *neighbour, r *record, m *zoneMessage) bool {
	if z.leaving || r != nil && (r.owner == z.cfg.ID || r.epoch >= m.epoch) || r == nil && len(z.list) >= z.cfg.MaxActors {
		return false
	}
	if r == nil {
		r = z.add(m.id)
	}
	r.owner, r.epoch, r.ended, r.shownAt = n.id, m.epoch, false, z.now
	z.look(r)
	made := r.a == nil
	if made && !z.spawn(r, m.class) || r.a.body().ClassName() != m.class {
		return false
	}
	if z.cfg.Game.Take(r.a, m.state) != nil {
		if made {
			z.unmirror(r)
		}
		return false
	}
	z.own(r, m.epoch)
	r.table = m.table
	z.Counters.Taken++
	return true
}

// restore has this server play an actor from now on, as the store has it. It reports whether the game does.
func (z *Zone) restore(id netguid.GUID, epoch uint32, class string, state []byte) bool {
	r := z.records[id]
	if r == nil {
		r = z.add(id)
	}
	r.owner, r.epoch, r.ended, r.shownAt = "", epoch, false, z.now
	z.look(r)
	made := r.a == nil
	if made && !z.spawn(r, class) || r.a.body().ClassName() != class {
		return false
	}
	if z.cfg.Game.Take(r.a, state) != nil {
		if made {
			z.unmirror(r)
		}
		return false
	}
	z.own(r, epoch)
	return true
}

// lose ends this server's authority over an actor that is another's by a newer epoch.
func (z *Zone) lose(r *record) {
	z.hide(r)
	r.owner, r.shownAt = "", z.now
}
