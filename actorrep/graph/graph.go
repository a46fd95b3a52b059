package graph

import (
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Graph decides which actors are relevant to which connections. The zero value has a Grid. It serves one world and
// belongs to that world's goroutine.
type Graph struct {
	// Nodes is the nodes, in the order in which they are updated. A node that Route returns and that isn't in Nodes is
	// added. Default: a Grid.
	Nodes []Node
	// Route returns the node for an actor. It is called when the actor is spawned, when its owner or settings change,
	// and after Changed. If it is nil or returns nil, the actor's settings decide: an always relevant actor is in an
	// Always, one that only its owner sees in an Owned, all others in the first Grid of Nodes.
	Route func(a actorrep.Actor) Node
	// Middle and Far are n: changes of actors that a connection sees from there are sent in every n-th Step. Default 1;
	// at most actorrep.MaxUpdateEvery.
	Middle, Far int

	world   *actorrep.World
	nodes   []Node // those attached
	always  *Always
	owned   *Owned
	grid    *Grid
	items   []*Item // by index; index 0 is unused
	unused  []*Item
	queue   []*Item // items with news
	doubts  []doubt
	viewers []*Viewer
	byPeer  map[*actorrep.Peer]*Viewer
	free    []int // indexes of viewers
	replays int
}

// Relevancy makes the graph a world's Relevancy: pass it as actorrep.Config.Relevancy.
func (g *Graph) Relevancy(w *actorrep.World) actorrep.Relevancy {
	g.world, g.byPeer = w, map[*actorrep.Peer]*Viewer{}
	g.items = []*Item{nil}
	g.always, g.owned = &Always{}, &Owned{}
	g.attach(g.always)
	g.attach(g.owned)
	for _, n := range g.Nodes {
		g.attach(n)
	}
	if g.grid == nil {
		g.attach(&Grid{})
	}
	return g
}

// attach adds a node, unless it was added before.
func (g *Graph) attach(n Node) {
	if slices.Contains(g.nodes, n) {
		return
	}
	g.nodes = append(g.nodes, n)
	if grid, is := n.(*Grid); is && g.grid == nil {
		g.grid = grid
	}
	n.Attach(g)
	for _, v := range g.viewers {
		n.AddPeer(v)
	}
}

// Item is an actor's Item; nil when it isn't in the graph: not spawned, torn off, or a component.
func (g *Graph) Item(a actorrep.Actor) *Item {
	if a == nil {
		return nil
	}
	if index, _ := relevancyIndex(a); index > 0 && index < len(g.items) && g.items[index] != nil && g.items[index].Actor == a {
		return g.items[index]
	}
	return nil
}

// Viewer is a connection's Viewer; nil when it isn't in the graph.
func (g *Graph) Viewer(p *actorrep.Peer) *Viewer { return g.byPeer[p] }

// Viewers calls yield for each connection, in the order in which they were added. Connections may be added and removed
// meanwhile. One removed before its turn isn't yielded, nor is one that is added.
func (g *Graph) Viewers(yield func(*Viewer) bool) {
	for _, v := range g.viewers {
		if g.byPeer[v.Peer] == v && !yield(v) {
			return
		}
	}
}

// Changed has the graph check an actor again in the next Step. Call it when the actor moved without a change of
// replicated values, or when Route would return another node.
func (g *Graph) Changed(a actorrep.Actor) {
	if it := g.Item(a); it != nil {
		g.note(it, moved|settings)
	}
}

// AddActor adds an actor; the next Step places it.
func (g *Graph) AddActor(a actorrep.Actor) {
	var it *Item
	if n := len(g.unused); n > 0 {
		it, g.unused[n-1] = g.unused[n-1], nil
		g.unused = g.unused[:n-1]
	} else {
		it = &Item{Index: len(g.items)}
		g.items = append(g.items, nil)
	}
	it.Actor = a
	g.items[it.Index] = it
	setRelevancyIndex(a, it.Index)
	g.note(it, settings)
}

// RemoveActor removes an actor.
func (g *Graph) RemoveActor(a actorrep.Actor) {
	it := g.Item(a)
	if it == nil {
		return
	}
	setRelevancyIndex(a, 0)
	g.items[it.Index] = nil
	if it.node != nil {
		it.node.RemoveActor(it)
	}
	for _, v := range g.viewers {
		if v.Sees(it) != Hidden {
			v.set(it, Hidden)
		}
		if v.target == it {
			v.target = nil
		}
	}
	if it.place > 0 {
		last := len(g.queue) - 1
		g.queue[it.place-1] = g.queue[last]
		g.queue[it.place-1].place = it.place
		g.queue[last] = nil
		g.queue = g.queue[:last]
	}
	*it = Item{Index: it.Index}
	g.unused = append(g.unused, it)
}

// ActorChanged says that an actor may have moved.
func (g *Graph) ActorChanged(a actorrep.Actor) {
	if it := g.Item(a); it != nil {
		g.note(it, moved)
	}
}

// Stays sets stays, one for each of the actors, whose values have changed: whether it is where its node has it, so that ActorChanged needn't be called.
// Calls for different actors may run at the same time.
func (g *Graph) Stays(actors []actorrep.Actor, stays []bool) {
	g.grid.fetch(actors)
	for i, a := range actors {
		index, id := relevancyIndex(a)
		stays[i] = g.grid.stays(a, index, id)
	}
}

// OwnerChanged says that an actor's owner or settings changed.
func (g *Graph) OwnerChanged(a actorrep.Actor) {
	if it := g.Item(a); it != nil {
		g.note(it, settings)
	}
}

func (g *Graph) note(it *Item, n news) {
	it.news |= n
	if it.place == 0 {
		g.queue = append(g.queue, it)
		it.place = len(g.queue)
	}
}

// AddPeer adds a connection.
func (g *Graph) AddPeer(p *actorrep.Peer) {
	v := &Viewer{Peer: p, Index: len(g.viewers), joined: g.world.Now()}
	if n := len(g.free); n > 0 {
		v.Index, g.free = g.free[n-1], g.free[:n-1]
	}
	g.viewers = append(g.viewers, v)
	g.byPeer[p] = v
	if p.IsReplay() {
		g.replays++
		for _, it := range g.items[1:] {
			if it != nil {
				g.Look(v, it)
			}
		}
	}
	for _, n := range g.nodes {
		n.AddPeer(v)
	}
}

// RemovePeer removes a connection.
func (g *Graph) RemovePeer(p *actorrep.Peer) {
	v := g.byPeer[p]
	if v == nil {
		return
	}
	for _, n := range g.nodes {
		n.RemovePeer(v)
	}
	delete(g.byPeer, p)
	i := slices.Index(g.viewers, v)
	g.viewers = slices.Concat(g.viewers[:i], g.viewers[i+1:]) // the old list may be iterated
	g.free = append(g.free, v.Index)
	if p.IsReplay() {
		g.replays--
	}
	*v = Viewer{Index: v.Index}
}

// Update handles the changes since the last Step.
func (g *Graph) Update(now time.Duration) {
	for i := 0; i < len(g.queue); i++ {
		it := g.queue[i]
		n := it.news
		it.place, it.news = 0, 0
		g.queue[i] = nil
		g.settle(it, n)
	}
	g.queue = g.queue[:0]
	for _, v := range g.viewers {
		if t := g.Item(v.Peer.ViewTarget()); t != v.target {
			old := v.target
			v.target = t
			g.lookIf(v, old)
			g.lookIf(v, t)
		}
	}
	for _, n := range g.nodes {
		n.Update(now)
	}
	for _, d := range g.doubts {
		g.decide(d.v, d.it)
	}
	clear(g.doubts)
	g.doubts = g.doubts[:0]
}

// settle puts an actor into the node where it belongs now.
func (g *Graph) settle(it *Item, n news) {
	if n&settings == 0 {
		it.node.ActorChanged(it)
		return
	}
	fresh := it.node == nil
	if owner := baseOf(it.Actor).Owner(); owner != it.owner {
		old := g.byPeer[it.owner]
		it.owner = owner
		if !fresh {
			g.lookIf(old, it)
		}
	}
	if node := g.route(it.Actor); node != it.node {
		if !fresh {
			it.node.RemoveActor(it)
		}
		it.node = node
		node.AddActor(it)
		if !fresh || g.replays > 0 {
			g.LookAll(it)
		}
	} else {
		node.ActorChanged(it)
	}
	if v := g.byPeer[it.owner]; v != nil {
		g.Look(v, it)
	}
}

// route returns the node of an actor.
func (g *Graph) route(a actorrep.Actor) Node {
	if g.Route != nil {
		if n := g.Route(a); n != nil {
			g.attach(n)
			return n
		}
	}
	switch b := baseOf(a); {
	case b.AlwaysRelevant():
		return g.always
	case b.OnlyOwner():
		return g.owned
	}
	return g.grid
}

func (g *Graph) lookIf(v *Viewer, it *Item) {
	if v != nil && it != nil {
		g.Look(v, it)
	}
}

// LookAll calls Look for all connections.
func (g *Graph) LookAll(it *Item) {
	for _, v := range g.viewers {
		g.Look(v, it)
	}
}

// Look asks the graph to decide again whether, and from how far, a connection sees an actor. It decides at the end of
// Update, when everything is placed, so that actors and viewers that move together don't flicker.
func (g *Graph) Look(v *Viewer, it *Item) {
	if was := v.Sees(it); g.see(v, it, was) != was {
		g.doubts = append(g.doubts, doubt{v, it})
	}
}

// doubt is a pair to decide.
type doubt struct {
	v  *Viewer
	it *Item
}

// decide decides a pair and tells the connection if the result changed.
func (g *Graph) decide(v *Viewer, it *Item) {
	if it.Actor == nil || v.Peer == nil {
		return // removed meanwhile
	}
	was := v.Sees(it)
	is := g.see(v, it, was)
	if is == was {
		return
	}
	v.set(it, is)
	if (is == Hidden) != (was == Hidden) {
		v.Peer.SetRelevant(it.Actor, is != Hidden)
	}
	if is != Hidden && (g.Middle > 1 || g.Far > 1) {
		v.Peer.SetUpdateEvery(it.Actor, [...]int{1, 1, g.Middle, g.Far}[is])
	}
}

// see decides a pair: first those who always see an actor, then the node's rule.
func (g *Graph) see(v *Viewer, it *Item, was Sight) Sight {
	switch {
	case it.owner == v.Peer || v.target == it || v.Peer.IsReplay():
		return Near
	case it.node == nil:
		return Hidden
	}
	return it.node.See(v, it, was)
}
