package actorrep

import (
	"cmp"
	"slices"
)

// Unreal's priority factors. Unreal's bands are distances in centimetres in the view direction; here they are fractions
// of the cull distance, in any direction.
const (
	targetFactor = 4   // the view target
	nearFactor   = 2   // within a quarter of the cull distance
	farFactor    = 0.4 // beyond half of it
)

// priority is how urgent a view is: the actor's priority, times how long it has waited, times a factor for its distance.
func (v *view) priority(x, y, z float64, hasView bool) float64 {
	b := v.b
	p := float64(b.priority) * float64(1+v.peer.world.frame-v.since)
	if v.peer.viewTarget != nil && v.peer.viewTarget.base() == b || v.aud != 0 && !v.peer.replay {
		return p * targetFactor
	}
	l, ok := b.self.(Located)
	if !ok || !hasView || b.cull <= 0 {
		return p
	}
	ax, ay, az := l.Location()
	d := ((ax-x)*(ax-x) + (ay-y)*(ay-y) + (az-z)*(az-z)) / (b.cull * b.cull)
	switch {
	case d < 1./16:
		return p * nearFactor
	case d > 1./4:
		return p * farFactor
	}
	return p
}

type ranked struct {
	v *view
	p float64
}

// rank sorts views, the most urgent first.
func (p *Peer) rank(views []*view) {
	x, y, z, ok := p.Viewpoint()
	list := p.batch.ranks[:0]
	for _, v := range views {
		list = append(list, ranked{v, v.priority(x, y, z, ok)})
	}
	slices.SortFunc(list, func(a, b ranked) int {
		if c := cmp.Compare(b.p, a.p); c != 0 {
			return c
		}
		return cmp.Compare(a.v.b.guid, b.v.b.guid)
	})
	for i, r := range list {
		views[i] = r.v
	}
	clear(list)
	p.batch.ranks = list[:0]
}
