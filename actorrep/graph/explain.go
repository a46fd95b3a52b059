package graph

import "github.com/bunchnet/bunchnet/actorrep"

// ExplainRelevancy says in words why a connection does or doesn't see an actor.
func (g *Graph) ExplainRelevancy(p *actorrep.Peer, a actorrep.Actor) string {
	v, it := g.byPeer[p], g.Item(a)
	switch {
	case it == nil:
		return "the graph doesn't have it"
	case v == nil:
		return "the graph doesn't have the connection"
	case p.IsReplay():
		return "a recording sees everything"
	case it.owner == p:
		return "its owner always sees it"
	case v.target == it:
		return "it is the connection's view target"
	case it.node == nil:
		return "it is new and looked at in the next Step"
	}
	return it.node.Explain(v, it)
}
