package graph

import (
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Graph decides which actors are relevant to which connections. The zero value has a Grid. It serves one world, and belongs to its
// goroutine.
type Graph struct {
	// Nodes is the nodes there are, in the order in which they are updated. Others are added when Route first
	// returns them. Default a Grid.
	Nodes []Node
	// Route says in which node an actor belongs. It is asked when the actor is spawned and when its owner or settings
	// change, or after Changed. nil, for the function or its answer, is by the actor's settings: what is always relevant in an Always,
	// what is only for its owner in an Owned, and all others in the first Grid of Nodes.
	Route func(a actorrep.Actor) Node
	// Middle and Far are in every how many Steps changes of actors go out that are seen from there. Default 1,
	// at most actorrep.MaxUpdateEvery.
	Middle, Far int

	world   *actorrep.World
	nodes   []Node // attached
	always  *Always
	owned   *Owned
	grid    *Grid
	items   []*Item // by index; the first is none's
	unused  []*Item
	queue   []*Item // with news
	doubts  []doubt
	viewers []*Viewer
	byPeer  map[*actorrep.Peer]*Viewer
	free    []int // indexes of viewers
	replays int
}

// Relevancy makes the graph a world's driver: Config{Relevancy: g.Relevancy}.
func (g *Graph) Relevancy(w *actorrep.World) actorrep.ReplicationDriver {
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

// attach adds a node, unless it is there already.
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

// Item is an actor's, or nil when it isn't in the graph: not spawned, torn off, a component.
func (g *Graph) Item(a actorrep.Actor) *Item {
	if a == nil {
		return nil
	}
	if i := driverIndex(a); i > 0 && i < len(g.items) && g.items[i] != nil && g.items[i].Actor == a {
		return g.items[i]
	}
	return nil
}

// Viewer is a connection's, or nil when it isn't in the graph.
func (g *Graph) Viewer(p *actorrep.Peer) *Viewer { return g.byPeer[p] }

// Viewers calls yield for each connection, in the order they came. Connections may be removed meanwhile, and aren't yielded
// then; those that are added aren't.
func (g *Graph) Viewers(yield func(*Viewer) bool) {
	for _, v := range g.viewers {
		if g.byPeer[v.Peer] == v && !yield(v) {
			return
		}
	}
}

// Changed has the graph look at an actor again in the next Step: it has moved without a change of replicated values, or Route would
// answer otherwise.
func (g *Graph) Changed(a actorrep.Actor) {
	if it := g.Item(a); it != nil {
		g.note(it, moved|settings)
	}
}

// AddActor takes an actor in, in the next Step.
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
	setDriverIndex(a, it.Index)
	g.note(it, settings)
}

// RemoveActor forgets one.
func (g *Graph) RemoveActor(a actorrep.Actor) {
	it := g.Item(a)
	if it == nil {
		return
	}
	setDriverIndex(a, 0)
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

// ActorChanged notes that an actor may have moved.
func (g *Graph) ActorChanged(a actorrep.Actor) {
	if it := g.Item(a); it != nil {
		g.note(it, moved)
	}
}

// OwnerChanged notes that an actor's owner or settings changed.
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

// AddPeer takes a connection in.
func (g *Graph) AddPeer(p *actorrep.Peer) {
	v := &Viewer{Peer: p, Index: len(g.viewers)}
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

// RemovePeer forgets one.
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
	g.viewers = slices.Concat(g.viewers[:i], g.viewers[i+1:]) // it may be walked
	g.free = append(g.free, v.Index)
	if p.IsReplay() {
		g.replays--
	}
	*v = Viewer{Index: v.Index}
}

// Update looks at what has news.
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

// settle puts an actor where it belongs now.
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

// route is the node of an actor.
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

// LookAll is Look for all connections.
func (g *Graph) LookAll(it *Item) {
	for _, v := range g.viewers {
		g.Look(v, it)
	}
}

// Look says that a connection may see an actor otherwise than until now. It is decided when everything is where it
// belongs, at the end of Update: what moves together doesn't flicker.
func (g *Graph) Look(v *Viewer, it *Item) {
	if was := v.Sees(it); g.see(v, it, was) != was {
		g.doubts = append(g.doubts, doubt{v, it})
	}
}

// doubt is a pair to be decided.
type doubt struct {
	v  *Viewer
	it *Item
}

// decide looks at a pair and tells if it changed.
func (g *Graph) decide(v *Viewer, it *Item) {
	if it.Actor == nil || v.Peer == nil {
		return // gone meanwhile
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

// see is the rule: who always sees an actor, and then its node's.
func (g *Graph) see(v *Viewer, it *Item, was Sight) Sight {
	switch {
	case it.owner == v.Peer || v.target == it || v.Peer.IsReplay():
		return Near
	case it.node == nil:
		return Hidden
	}
	return it.node.See(v, it, was)
}
