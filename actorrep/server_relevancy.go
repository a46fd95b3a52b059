package actorrep

import "time"

// ReplicationDriver decides which actors are relevant to which connections, and tells by Peer.SetRelevant when that
// changes. It is told of what comes and goes; components aren't its business.
type ReplicationDriver interface {
	AddActor(a Actor)
	RemoveActor(a Actor)
	AddPeer(p *Peer)
	RemovePeer(p *Peer)
	// OwnerChanged says that an actor's owner, or one of its settings of relevancy, is another.
	OwnerChanged(a Actor)
	// Update is called each Step.
	Update(now time.Duration)
	// ExplainRelevancy says in words why an actor is relevant to a connection or isn't.
	ExplainRelevancy(p *Peer, a Actor) string
}

// ChangeListener may be implemented by a ReplicationDriver that wants to know what may have moved, instead of
// asking every actor where it is.
type ChangeListener interface {
	// ActorChanged says that a Step found other values in an actor. It is called before Update; not for components, nor
	// for what isn't compared, as long as it isn't: dormant actors, and those that wait for their update frequency.
	ActorChanged(a Actor)
}

// list is the plain driver: it looks at every actor for every connection, each Step as long as these are few, and
// spread over a second when they are many. In between it looks at what is new at once.
type list struct {
	world *World
	next  int     // of all pairs
	fresh []*Base // to be looked at for all
	came  []*Peer // to be shown all
	last  time.Duration
}

const (
	// fewPairs is how many pairs of actor and connection are looked at in one Step in any case.
	fewPairs = 2000
	// recheck is the time in which all pairs are looked at.
	recheck = time.Second
	// hysteresis is how much farther than the cull distance an actor must be to become irrelevant again.
	hysteresis = 1.1
)

func (l *list) AddActor(a Actor)     { l.refresh(a.base()) }
func (l *list) RemoveActor(Actor)    {}
func (l *list) AddPeer(p *Peer)      { l.came = append(l.came, p) }
func (l *list) RemovePeer(*Peer)     {}
func (l *list) OwnerChanged(a Actor) { l.refresh(a.base()) }

// refresh has an actor looked at for all in the next Update. Without connections there is none; who comes is shown all.
func (l *list) refresh(b *Base) {
	if len(l.world.peers) > 0 {
		l.fresh = append(l.fresh, b)
	}
}

// Update looks at its share.
func (l *list) Update(now time.Duration) {
	w := l.world
	w.walk() // Config.Relevant is the game's
	defer w.walked()
	peers := w.peers
	for _, p := range l.came {
		for _, b := range w.actors {
			l.look(p, b)
		}
	}
	clear(l.came)
	l.came = l.came[:0]
	for _, b := range l.fresh {
		for _, p := range peers {
			l.look(p, b)
		}
	}
	clear(l.fresh)
	l.fresh = l.fresh[:0]
	pairs := len(peers) * len(w.actors)
	share := pairs
	if pairs > fewPairs {
		share = min(pairs, max(fewPairs, int(float64(pairs)*(now-l.last).Seconds()/recheck.Seconds())))
	}
	l.last = now
	for range share {
		if l.next++; l.next >= pairs {
			l.next = 0
		}
		if p := peers[l.next%len(peers)]; !p.replay { // a recording's mind doesn't change
			l.look(p, w.actors[l.next/len(peers)])
		}
	}
}

func (l *list) look(p *Peer, b *Base) {
	if b == nil || b.world != l.world || b.parent != nil || b.tornOff || p.out == nil {
		return
	}
	if relevant := l.relevant(p, b); relevant != p.IsRelevant(b.self) {
		p.SetRelevant(b.self, relevant)
	}
}

func (l *list) relevant(p *Peer, b *Base) bool {
	if f := l.world.cfg.Relevant; f != nil && !p.replay {
		return f(p, b.self)
	}
	return p.Sees(b.self)
}

// Sees applies an actor's own settings to a connection: recordings see everything; then always, the owner, only the
// owner, and the cull distance, which is a tenth more for what is relevant already.
func (p *Peer) Sees(a Actor) bool {
	b := a.base()
	switch {
	case p.replay || b.always || b.owner == p || p.viewTarget == a:
		return true
	case b.onlyOwner:
		return false
	}
	d, limit, ok := p.distance(a)
	if !ok {
		return true
	}
	if p.IsRelevant(a) {
		limit *= hysteresis
	}
	return d <= limit*limit
}

// distance is the square of how far an actor is, and its cull distance; false when it has none, or no place.
func (p *Peer) distance(a Actor) (square, limit float64, ok bool) {
	b := a.base()
	l, located := a.(Located)
	x, y, z, view := p.Viewpoint()
	if !located || !view || b.cull <= 0 {
		return 0, 0, false
	}
	ax, ay, az := l.Location()
	return (ax-x)*(ax-x) + (ay-y)*(ay-y) + (az-z)*(az-z), b.cull, true
}

// ExplainRelevancy says why in words.
func (l *list) ExplainRelevancy(p *Peer, a Actor) string { return p.ExplainSight(a) }
