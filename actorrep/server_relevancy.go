package actorrep

import (
	"slices"
	"time"
)

// Relevancy decides which actors are relevant to which connections, and calls Peer.SetRelevant when that
// changes. It is told when actors and connections are added or removed. It isn't told of components.
type Relevancy interface {
	AddActor(a Actor)
	RemoveActor(a Actor)
	AddPeer(p *Peer)
	RemovePeer(p *Peer)
	// OwnerChanged says that an actor's owner or one of its relevancy settings has changed.
	OwnerChanged(a Actor)
	// Update is called each Step.
	Update(now time.Duration)
	// ExplainRelevancy says in words why an actor is or isn't relevant to a connection.
	ExplainRelevancy(p *Peer, a Actor) string
}

// ChangeListener may be implemented by a Relevancy that wants to be told which actors have changed, instead of
// asking every actor for its location. If it has a method Stays(actors []Actor, stays []bool) as well, that is called for the
// actors in which changed values were found, some at a time, and sets stays for each of them, which is as long. ActorChanged isn't called for those for
// which it is true. Stays is called on several cores at the same time with Config.Parallel, and must change nothing and keep neither list; graph.Graph has it.
type ChangeListener interface {
	// ActorChanged says that a Step found changed values in an actor. It is called before Update. It isn't called for
	// components, nor for actors while they aren't compared: dormant ones, and those waiting for their update frequency.
	ActorChanged(a Actor)
}

// list is a world's Relevancy when Config.Relevancy is nil. With few actors and connections it checks every pair each
// Step; with many it spreads the checks over a second. New actors and connections, and changed actors, are checked in the next Update.
type list struct {
	world *World
	next  int     // of all pairs, actor by actor: the next to check
	fresh []*Base // to be checked against every connection
	came  []*Peer // to be checked against every actor
	last  time.Duration
	parts [][]pairIndex // by part of a Step's pairs: those whose relevance has changed
	part  func(i, worker int)
	share int // of the pairs, in this Step
}

// pairIndex is the indices of an actor and a connection.
type pairIndex struct{ actor, peer int }

// pairAt is one of all pairs, of so many connections.
func pairAt(i, peers int) pairIndex { return pairIndex{i / peers, i % peers} }

// step goes to the next pair, and behind the last to the first.
func (p *pairIndex) step(actors, peers int) {
	if p.peer++; p.peer == peers {
		p.peer = 0
		if p.actor++; p.actor == actors {
			p.actor = 0
		}
	}
}

const (
	// fewPairs is how many pairs of actor and connection each Step may check in any case.
	fewPairs = 2000
	// pairsForCores are checked on several cores; with fewer the others would begin too late to help.
	pairsForCores = 1000
	// recheck is the time in which every pair is checked once.
	recheck = time.Second
	// hysteresis: a relevant actor becomes irrelevant only beyond this many times its cull distance.
	hysteresis = 1.1
)

func newList(w *World) *list {
	l := &list{world: w, parts: make([][]pairIndex, partsACore*len(w.workers))}
	l.part = func(i, _ int) { l.lookPart(i) }
	return l
}

func (l *list) AddActor(a Actor)     { l.refresh(a.base()) }
func (l *list) RemoveActor(Actor)    {}
func (l *list) AddPeer(p *Peer)      { l.came = append(l.came, p) }
func (l *list) RemovePeer(*Peer)     {}
func (l *list) OwnerChanged(a Actor) { l.refresh(a.base()) }

// refresh has the actor checked against every connection in the next Update. Without connections there is nothing to do:
// AddPeer checks a new connection against every actor.
func (l *list) refresh(b *Base) {
	if len(l.world.peers) > 0 {
		l.fresh = append(l.fresh, b)
	}
}

// Update checks this Step's share of the pairs.
func (l *list) Update(now time.Duration) {
	w := l.world
	w.walk() // Config.Relevant may spawn and destroy actors
	defer w.walked()
	peers := w.peers
	came, fresh := len(l.came), len(l.fresh) // those that come meanwhile are for the next Update
	for _, p := range l.came[:came] {
		for _, b := range w.actors {
			l.look(p, b)
		}
	}
	l.came = slices.Delete(l.came, 0, came)
	for _, b := range l.fresh[:fresh] {
		for _, p := range peers {
			l.look(p, b)
		}
	}
	l.fresh = slices.Delete(l.fresh, 0, fresh)
	pairs := len(peers) * len(w.actors)
	share := pairs
	if pairs > fewPairs {
		share = min(pairs, max(fewPairs, int(float64(pairs)*(now-l.last).Seconds()/recheck.Seconds())))
	}
	l.last = now
	if share == 0 {
		return
	}
	l.share, l.next = share, l.next%pairs // there may have been more
	if share >= pairsForCores && len(w.workers) > 1 && w.cfg.Relevant == nil {
		w.onCores(len(l.parts), l.part)
		for i, changed := range l.parts {
			for _, at := range changed {
				l.look(peers[at.peer], w.actors[at.actor])
			}
			l.parts[i] = changed[:0]
		}
	} else {
		at, actors := pairAt(l.next, len(peers)), len(w.actors)
		for range share {
			if p := peers[at.peer]; !p.replay { // a recording sees everything, always
				l.look(p, w.actors[at.actor])
			}
			at.step(actors, len(peers))
		}
	}
	l.next = (l.next + share) % pairs
}

// lookPart finds the pairs of a part of this Step's share whose relevance has changed. What one pair's is doesn't depend on
// another's.
func (l *list) lookPart(part int) {
	peers, actors := l.world.peers, l.world.actors
	pairs, n := len(peers)*len(actors), len(l.parts)
	from, to := part*l.share/n, (part+1)*l.share/n
	at := pairAt((l.next+from)%pairs, len(peers))
	for range to - from {
		if p := peers[at.peer]; !p.replay && l.changed(p, actors[at.actor]) {
			l.parts[part] = append(l.parts[part], at)
		}
		at.step(len(actors), len(peers))
	}
}

func (l *list) look(p *Peer, b *Base) {
	if l.changed(p, b) {
		p.SetRelevant(b.self, !p.relevant(b))
	}
}

// changed reports whether an actor is to become relevant, or is no longer.
func (l *list) changed(p *Peer, b *Base) bool {
	if b == nil || b.world != l.world || b.parent != nil || b.tornOff || p.byHand || p.removed() {
		return false
	}
	if f := l.world.cfg.Relevant; f != nil && !p.replay {
		return f(p, b.self) != p.relevant(b)
	}
	was := p.relevant(b)
	return p.sees(b, was) != was
}

// Sees applies an actor's own settings, in this order. A recording sees everything. Everybody sees an actor that is
// always relevant. The owner sees it, and so does a connection whose view target it is. An actor that is only for its
// owner is hidden from others. Else the cull distance decides; it is a tenth larger while the actor is relevant.
func (p *Peer) Sees(a Actor) bool {
	b := a.base()
	return p.sees(b, p.relevant(b))
}

// sees is Sees, relevant being whether it is.
func (p *Peer) sees(b *Base, relevant bool) bool {
	switch {
	case p.replay || b.always || b.owner == p || p.viewTarget == b.self:
		return true
	case b.onlyOwner:
		return false
	case b.cull <= 0:
		return true
	}
	d, limit, ok := p.distance(b.self)
	if !ok {
		return true
	}
	if relevant {
		limit *= hysteresis
	}
	return d <= limit*limit
}

// distance returns the squared distance to an actor, and its cull distance. ok is false when one of these is unknown:
// the actor has no cull distance or no Location, or the connection has no viewpoint.
func (p *Peer) distance(a Actor) (square, limit float64, ok bool) {
	b := a.base()
	if b.cull <= 0 {
		return 0, 0, false
	}
	l, located := a.(Located)
	x, y, z, view := p.Viewpoint()
	if !located || !view {
		return 0, 0, false
	}
	ax, ay, az := l.Location()
	return (ax-x)*(ax-x) + (ay-y)*(ay-y) + (az-z)*(az-z), b.cull, true
}

// ExplainRelevancy is Peer.ExplainSight.
func (l *list) ExplainRelevancy(p *Peer, a Actor) string { return p.ExplainSight(a) }
