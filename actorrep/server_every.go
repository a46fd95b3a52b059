package actorrep

// MaxUpdateEvery is the most Steps that SetUpdateEvery spreads.
const MaxUpdateEvery = 64

// SetUpdateEvery lets changes of an actor, and of its components, go to the connection in every n-th Step only, 1 to
// MaxUpdateEvery: a way to spend less on what is far. What goes then is the newest, once. Which Step of the n is an
// actor's depends on its id, so that the work is spread. What was lost, and calls, don't wait. It does nothing when the connection
// doesn't see the actor, and is forgotten when it sees it no more.
func (p *Peer) SetUpdateEvery(a Actor, n int) {
	if v := p.views[a.base()]; v != nil {
		v.setEvery(uint8(min(max(n, 1), MaxUpdateEvery)))
	}
}

// UpdateEvery is that number; 0 when the connection doesn't see the actor.
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
		v.hurry()
	}
	for _, c := range v.b.children {
		if cv := v.peer.views[c]; cv != nil {
			cv.setEvery(n)
		}
	}
}

// park puts a view off until its Step comes, unless that is this one.
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
	at := &p.later[(p.world.frame+wait)%MaxUpdateEvery]
	*at = append(*at, v)
	v.inLater = true
	return true
}

// hurry puts a view where it will be served in the next Step whatever its pace.
func (v *view) hurry() {
	if v.state == open && v.flags&pending == 0 && v.dirty&v.allowed != 0 {
		v.queue()
	}
}

func (v *view) queue() {
	v.flags |= pending
	v.since = v.peer.world.frame
	v.peer.pending = append(v.peer.pending, v)
}

// unpark queues those whose Step this is.
func (p *Peer) unpark() {
	if p.later == nil {
		return
	}
	at := &p.later[p.world.frame%MaxUpdateEvery]
	for _, v := range *at {
		v.inLater = false
		v.hurry()
	}
	clear(*at)
	*at = (*at)[:0]
}
