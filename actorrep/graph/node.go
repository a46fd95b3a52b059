package graph

import (
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Sight is from how far a connection sees an actor.
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

// Node is a rule for who sees the actors that are in it.
//
// See is the rule. It must be a function of what the node knows, and cheap. When something changes that
// could make it answer otherwise, the node calls Graph.Look for each pair that it may concern; calling it for more does no
// harm. It may be asked about an actor or a connection before it is told of it, and should answer Hidden then. Nodes are
// pointers, made once. The graph calls the other methods: each actor's from Update, a connection's when it comes and goes.
type Node interface {
	// Attach is called once, before all others.
	Attach(g *Graph)
	AddPeer(v *Viewer)
	RemovePeer(v *Viewer)
	// AddActor puts an actor into the node. It calls Look for who may see it.
	AddActor(it *Item)
	// RemoveActor takes it out; the graph looks again itself.
	RemoveActor(it *Item)
	// ActorChanged says that an actor's values or settings have changed: it may have moved.
	ActorChanged(it *Item)
	// Update is called each Step, after the actors.
	Update(now time.Duration)
	// See says how a connection sees an actor of the node; was is what it was until now.
	See(v *Viewer, it *Item, was Sight) Sight
	// Explain says why, in words.
	Explain(v *Viewer, it *Item) string
}

// Nop is a Node's methods that do nothing, to be embedded.
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

// See is never true: the graph itself shows actors to their owners.
func (*Owned) See(*Viewer, *Item, Sight) Sight { return Hidden }

// Explain says so.
func (*Owned) Explain(*Viewer, *Item) string { return "only its owner sees it" }

// Always is for actors that everybody sees.
type Always struct {
	Nop
	graph *Graph
	list  itemList
}

// Attach keeps the graph.
func (n *Always) Attach(g *Graph) { n.graph = g }

// AddPeer shows a new connection what is there.
func (n *Always) AddPeer(v *Viewer) {
	for _, it := range n.list.items {
		n.graph.Look(v, it)
	}
}

// AddActor shows an actor to all.
func (n *Always) AddActor(it *Item) {
	n.list.add(it)
	n.graph.LookAll(it)
}

// RemoveActor forgets it.
func (n *Always) RemoveActor(it *Item) { n.list.remove(it) }

// See is always true.
func (*Always) See(*Viewer, *Item, Sight) Sight { return Near }

// Explain says so.
func (*Always) Explain(*Viewer, *Item) string { return "everybody sees it" }

// itemList is actors in an order that depends on nothing but the calls.
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

// grown is s with a place for index i.
func grown[T any](s []T, i int) []T {
	for len(s) <= i {
		var zero T
		s = append(s, zero)
	}
	return s
}

// several is nodes at once.
type several struct {
	nodes []Node
	all   bool
}

// All is a node in which actors are seen by whom all of the nodes let see them, from as far as the farthest
// says. The same nodes may be used by themselves as well.
func All(nodes ...Node) Node { return &several{nodes, true} }

// Any is a node in which actors are seen by whom one of the nodes lets see them, from as near as the nearest says.
func Any(nodes ...Node) Node { return &several{nodes, false} }

// Attach sees that the graph knows the nodes, which it then serves by itself.
func (n *several) Attach(g *Graph) {
	for _, c := range n.nodes {
		g.attach(c)
	}
}

// AddPeer leaves that to the nodes.
func (*several) AddPeer(*Viewer) {}

// RemovePeer leaves that to the nodes.
func (*several) RemovePeer(*Viewer) {}

// Update leaves that to the nodes.
func (*several) Update(time.Duration) {}

// AddActor puts an actor into all.
func (n *several) AddActor(it *Item) {
	for _, c := range n.nodes {
		c.AddActor(it)
	}
}

// RemoveActor takes it out.
func (n *several) RemoveActor(it *Item) {
	for _, c := range n.nodes {
		c.RemoveActor(it)
	}
}

// ActorChanged tells all.
func (n *several) ActorChanged(it *Item) {
	for _, c := range n.nodes {
		c.ActorChanged(it)
	}
}

// See combines what they say.
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

// Explain says what each says.
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
