package graph

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Room identifies a place, a team, a level, or anything else that connections have in common with actors.
type Room uint32

// ErrNoPeer is returned by SetPeer for a connection that isn't in the graph.
var ErrNoPeer = errors.New("graph: the connection isn't in the graph of these Rooms; call World.AddConn first, and name the Rooms in Graph.Nodes")

// Rooms shows actors to connections that have a room in common with them. An actor in no room is seen only by its owner.
type Rooms struct {
	// Of appends the rooms of an actor. It is called when the actor is spawned, when its values or settings change, and
	// after Graph.Changed. nil: actors are in no room.
	Of func(a actorrep.Actor, rooms []Room) []Room

	graph   *Graph
	rooms   map[Room]*room
	actors  [][]Room // by index of an item
	peers   [][]Room // by index of a viewer
	scratch []Room
}

// room is who is in one room. It is never removed: rooms are few.
type room struct {
	items   itemList
	viewers []*Viewer
}

// Attach stores the graph.
func (n *Rooms) Attach(g *Graph) { n.graph, n.rooms = g, map[Room]*room{} }

func (n *Rooms) room(r Room) *room {
	at := n.rooms[r]
	if at == nil {
		at = &room{}
		n.rooms[r] = at
	}
	return at
}

// normal sorts rooms and removes duplicates.
func normal(rooms []Room) []Room {
	slices.Sort(rooms)
	return slices.Compact(rooms)
}

// SetPeer puts a connection into the given rooms, and takes it out of all others.
func (n *Rooms) SetPeer(p *actorrep.Peer, rooms ...Room) error {
	if n.graph == nil || n.graph.Viewer(p) == nil {
		return ErrNoPeer
	}
	v := n.graph.Viewer(p)
	n.scratch = normal(append(n.scratch[:0], rooms...))
	n.setPeer(v, n.scratch)
	return nil
}

func (n *Rooms) setPeer(v *Viewer, rooms []Room) {
	old := slices.Clone(n.peers[v.Index])
	n.peers[v.Index] = append(n.peers[v.Index][:0], rooms...)
	for _, r := range old {
		if !slices.Contains(rooms, r) {
			at := n.room(r)
			at.viewers = slices.DeleteFunc(at.viewers, func(o *Viewer) bool { return o == v })
			n.lookAtRoom(v, at)
		}
	}
	for _, r := range rooms {
		if !slices.Contains(old, r) {
			at := n.room(r)
			at.viewers = append(at.viewers, v)
			n.lookAtRoom(v, at)
		}
	}
}

func (n *Rooms) lookAtRoom(v *Viewer, at *room) {
	for _, it := range at.items.items {
		n.graph.Look(v, it)
	}
}

// AddPeer adds a connection without rooms.
func (n *Rooms) AddPeer(v *Viewer) { n.peers = grown(n.peers, v.Index) }

// RemovePeer takes a connection out of its rooms.
func (n *Rooms) RemovePeer(v *Viewer) {
	for _, r := range n.peers[v.Index] {
		at := n.room(r)
		at.viewers = slices.DeleteFunc(at.viewers, func(o *Viewer) bool { return o == v })
	}
	n.peers[v.Index] = n.peers[v.Index][:0]
}

// AddActor puts an actor into its rooms.
func (n *Rooms) AddActor(it *Item) {
	n.actors = grown(n.actors, it.Index)
	n.ActorChanged(it)
}

// RemoveActor takes an actor out of its rooms.
func (n *Rooms) RemoveActor(it *Item) {
	for _, r := range n.actors[it.Index] {
		n.room(r).items.remove(it)
	}
	n.actors[it.Index] = n.actors[it.Index][:0]
}

// ActorChanged calls Of again.
func (n *Rooms) ActorChanged(it *Item) {
	n.scratch = n.scratch[:0]
	if n.Of != nil {
		n.scratch = normal(n.Of(it.Actor, n.scratch))
	}
	rooms := n.scratch
	if slices.Equal(rooms, n.actors[it.Index]) {
		return
	}
	old := n.actors[it.Index]
	n.actors[it.Index] = append([]Room(nil), rooms...)
	for _, r := range old {
		if !slices.Contains(rooms, r) {
			at := n.room(r)
			at.items.remove(it)
			n.lookIn(at, it)
		}
	}
	for _, r := range rooms {
		if !slices.Contains(old, r) {
			at := n.room(r)
			at.items.add(it)
			n.lookIn(at, it)
		}
	}
}

func (n *Rooms) lookIn(at *room, it *Item) {
	for _, v := range at.viewers {
		n.graph.Look(v, it)
	}
}

// Update does nothing.
func (*Rooms) Update(time.Duration) {}

// See returns Near when the two have a room in common.
func (n *Rooms) See(v *Viewer, it *Item, _ Sight) Sight {
	if it.Index >= len(n.actors) || v.Index >= len(n.peers) {
		return Hidden
	}
	a, p := n.actors[it.Index], n.peers[v.Index]
	for len(a) > 0 && len(p) > 0 {
		switch {
		case a[0] == p[0]:
			return Near
		case a[0] < p[0]:
			a = a[1:]
		default:
			p = p[1:]
		}
	}
	return Hidden
}

// Explain names the rooms of both.
func (n *Rooms) Explain(v *Viewer, it *Item) string {
	a, p := n.actors[it.Index], n.peers[v.Index]
	switch {
	case len(a) == 0:
		return "it is in no room"
	case len(p) == 0:
		return "the connection is in no room; call Rooms.SetPeer"
	case n.See(v, it, Hidden) == Hidden:
		return fmt.Sprintf("in other rooms: it is in %v, the connection in %v", a, p)
	}
	return fmt.Sprintf("in the same room: it is in %v, the connection in %v", a, p)
}

var _ Node = (*Rooms)(nil)
