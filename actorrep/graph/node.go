package graph

import (
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Sight says whether a connection sees an actor, and from how far.
type Sight uint8

// The sights.
const (
	Hidden Sight = iota // not relevant
	Near
	Middle
	Far
)

// String is the sight's name.
func (s Sight) String() string { return [...]string{"hidden", "near", "middle", "far"}[s&3] }

// Node is a rule that says who sees the actors in it.
//
// See is the rule. It must be cheap and depend only on what the node knows. When something changes that could change its
// result, the node calls Graph.Look for each pair concerned; more calls than needed do no harm. See may be called for an
// actor or a connection that the node wasn't told of yet, and should return Hidden then. Nodes are pointers, made once.
// The graph calls the actor methods from Update, and AddPeer and RemovePeer when a connection is added or removed.
type Node interface {
	// Attach is called once, before all others.
	Attach(g *Graph)
	AddPeer(v *Viewer)
	RemovePeer(v *Viewer)
	// AddActor adds an actor to the node. It calls Look for the connections that may see it.
	AddActor(it *Item)
	// RemoveActor removes an actor; the graph itself looks again.
	RemoveActor(it *Item)
	// ActorChanged says that an actor's values or settings have changed: it may have moved.
	ActorChanged(it *Item)
	// Update is called each Step, after the actors.
	Update(now time.Duration)
	// See returns how a connection sees an actor of the node; was is the previous result.
	See(v *Viewer, it *Item, was Sight) Sight
	// Explain says why, in words.
	Explain(v *Viewer, it *Item) string
}

// Nop implements Node's methods, except See and Explain, by doing nothing. Embed it.
type Nop struct{}

// Attach does nothing.
func (Nop) Attach(*Graph) {}

// AddPeer does nothing.
func (Nop) AddPeer(*Viewer) {}

// RemovePeer does nothing.
func (Nop) RemovePeer(*Viewer) {}

// AddActor does nothing.
func (Nop) AddActor(*Item) {}

// RemoveActor does nothing.
func (Nop) RemoveActor(*Item) {}

// ActorChanged does nothing.
func (Nop) ActorChanged(*Item) {}

// Update does nothing.
func (Nop) Update(time.Duration) {}

// Owned is for actors that only their owner sees.
type Owned struct{ Nop }

// See returns Hidden: the graph itself shows actors to their owners.
func (*Owned) See(*Viewer, *Item, Sight) Sight { return Hidden }

// Explain says that only the owner sees the actor.
func (*Owned) Explain(*Viewer, *Item) string { return "only its owner sees it" }

// Always is for actors that everybody sees.
type Always struct {
	Nop
	graph *Graph
	list  itemList
}

// Attach stores the graph.
func (n *Always) Attach(g *Graph) { n.graph = g }

// AddPeer shows the actors to a new connection.
func (n *Always) AddPeer(v *Viewer) {
	for _, it := range n.list.items {
		n.graph.Look(v, it)
	}
}

// AddActor shows an actor to all connections.
func (n *Always) AddActor(it *Item) {
	n.list.add(it)
	n.graph.LookAll(it)
}

// RemoveActor forgets an actor.
func (n *Always) RemoveActor(it *Item) { n.list.remove(it) }

// See returns Near.
func (*Always) See(*Viewer, *Item, Sight) Sight { return Near }

// Explain says that everybody sees the actor.
func (*Always) Explain(*Viewer, *Item) string { return "everybody sees it" }

// itemList is a list of actors whose order depends only on the calls.
type itemList struct {
	items []*Item
	place []int32 // by index of an item
}

func (l *itemList) add(it *Item) {
	l.place = grown(l.place, it.Index)
	l.place[it.Index] = int32(len(l.items))
	l.items = append(l.items, it)
}

func (l *itemList) remove(it *Item) {
	last := len(l.items) - 1
	at := l.place[it.Index]
	l.items[at] = l.items[last]
	l.place[l.items[at].Index] = at
	l.items[last] = nil
	l.items = l.items[:last]
}

// grown returns s with at least i+1 elements.
func grown[T any](s []T, i int) []T {
	for len(s) <= i {
		var zero T
		s = append(s, zero)
	}
	return s
}

// several combines nodes.
type several struct {
	nodes []Node
	all   bool
}

// All returns a node whose actors are seen by connections to which all of the nodes show them, from as far as the
// farthest of the results. The nodes may be used by themselves as well.
func All(nodes ...Node) Node { return &several{nodes, true} }

// Any returns a node whose actors are seen by connections to which at least one of the nodes shows them, from as near as
// the nearest of the results.
func Any(nodes ...Node) Node { return &several{nodes, false} }

// Attach adds the nodes to the graph, which updates them and tells them of connections.
func (n *several) Attach(g *Graph) {
	for _, c := range n.nodes {
		g.attach(c)
	}
}

// AddPeer does nothing: the graph tells the nodes.
func (*several) AddPeer(*Viewer) {}

// RemovePeer does nothing: the graph tells the nodes.
func (*several) RemovePeer(*Viewer) {}

// Update does nothing: the graph updates the nodes.
func (*several) Update(time.Duration) {}

// AddActor adds an actor to all nodes.
func (n *several) AddActor(it *Item) {
	for _, c := range n.nodes {
		c.AddActor(it)
	}
}

// RemoveActor removes it from all nodes.
func (n *several) RemoveActor(it *Item) {
	for _, c := range n.nodes {
		c.RemoveActor(it)
	}
}

// ActorChanged tells all nodes.
func (n *several) ActorChanged(it *Item) {
	for _, c := range n.nodes {
		c.ActorChanged(it)
	}
}

// See combines the results of the nodes.
func (n *several) See(v *Viewer, it *Item, was Sight) Sight {
	sight := Hidden
	for _, c := range n.nodes {
		s := c.See(v, it, was)
		switch {
		case n.all && s == Hidden:
			return Hidden
		case n.all:
			sight = max(sight, s)
		case s != Hidden && (sight == Hidden || s < sight):
			sight = s
		}
	}
	return sight
}

// Explain joins the explanations of the nodes.
func (n *several) Explain(v *Viewer, it *Item) string {
	var texts []string
	for _, c := range n.nodes {
		texts = append(texts, c.Explain(v, it))
	}
	if n.all {
		return strings.Join(texts, ", and ")
	}
	return strings.Join(texts, ", or ")
}

var (
	_ Node                    = (*several)(nil)
	_ actorrep.ChangeListener = (*Graph)(nil)
)
