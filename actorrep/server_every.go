package actorrep

import "slices"

// MaxUpdateEvery is the largest n of Peer.SetUpdateEvery.
const MaxUpdateEvery = 64

// SetUpdateEvery sends changes of an actor and of its components to the connection only in every n-th Step, n being 1 to
// MaxUpdateEvery; the newest values are sent then. It saves bandwidth on actors that are far away. The actor's id
// decides which Step of the n is its own, so that the load is spread. Lost values and calls don't wait. It has no effect
// when the connection doesn't see the actor, and is forgotten when it stops seeing it.
func (p *Peer) SetUpdateEvery(a Actor, n int) {
	if v := p.views[a.base()]; v != nil {
		v.setEvery(uint8(min(max(n, 1), MaxUpdateEvery)))
	}
}

// UpdateEvery is the n that SetUpdateEvery set; 0 when the connection doesn't see the actor.
func (p *Peer) UpdateEvery(a Actor) int {
	if v := p.views[a.base()]; v != nil {
		return max(int(v.every), 1)
	}
	return 0
}

func (v *view) setEvery(n uint8) {
	sooner := n < v.every
	v.every = n
	if sooner && v.inLater {
		at := &v.peer.later[v.laterAt]
		i := slices.Index(*at, v)
		*at = slices.Delete(*at, i, i+1)
		v.inLater = false
		v.hurry(v.peer.world.frame)
	}
	for c := range v.b.components {
		if cv := v.peer.views[c]; cv != nil {
			cv.setEvery(n)
		}
	}
}

// park makes a view wait for its Step, unless that is the current one.
func (v *view) park() bool {
	p := v.peer
	wait := (uint32(v.every) - (p.world.frame+uint32(v.b.guid>>1))%uint32(v.every)) % uint32(v.every) // the last bit is the same for all
	if wait == 0 || v.flags&mentioning != 0 {
		return false
	}
	if v.inLater {
		return true
	}
	if p.later == nil {
		p.later = make([][]*view, MaxUpdateEvery)
	}
	v.inLater, v.laterAt = true, uint8((p.world.frame+wait)%MaxUpdateEvery)
	at := &p.later[v.laterAt]
	*at = append(*at, v)
	return true
}

// hurry has a view served in the next Step, whatever n was given to SetUpdateEvery. It waits since that frame.
func (v *view) hurry(since uint32) {
	if v.state == open && v.flags&(pending|inTurns) == 0 && v.dirty&v.allowed != 0 {
		v.queue(since)
	}
}

func (v *view) queue(since uint32) {
	v.flags |= pending
	v.since = since
	v.peer.pending = append(v.peer.pending, v)
}

// unpark queues the views whose Step this is.
func (p *Peer) unpark() {
	at := &p.later[p.world.frame%MaxUpdateEvery]
	for _, v := range *at {
		v.inLater = false
		v.hurry(p.world.frame)
	}
	clear(*at)
	*at = (*at)[:0]
}
