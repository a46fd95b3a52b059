package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

func TestRooms(t *testing.T) {
	rooms := &Rooms{Of: func(a actorrep.Actor, rooms []Room) []Room {
		for m := a.(*thing).Team.Get(); m != 0; m &= m - 1 {
			rooms = append(rooms, Room(m&-m))
		}
		return rooms
	}}
	grid := &Grid{}
	both, either := All(rooms, grid), Any(rooms, grid)
	g := &Graph{Nodes: []Node{rooms, grid, both, either}}
	kind := map[actorrep.Actor]Node{}
	g.Route = func(a actorrep.Actor) Node { return kind[a] }
	w := &world{rig: newRig(t, g, actorrep.Config{}), rng: seeded(t, 11), size: 400}
	in := map[*actorrep.Peer]uint32{}
	nodes := []Node{rooms, grid, both, either}
	shown := 0
	for range 500 {
		if len(w.actors) < 50 || w.rng.IntN(10) == 0 {
			a := &thing{}
			a.move(w.rng.Float64()*400, w.rng.Float64()*400, 0)
			a.Team.Set(w.rng.Uint32N(16))
			kind[a] = nodes[w.rng.IntN(4)]
			require.NoError(t, w.w.Spawn(a))
			w.actors = append(w.actors, a)
		}
		a := w.actors[w.rng.IntN(len(w.actors))]
		switch w.rng.IntN(8) {
		case 0:
			a.Team.Set(w.rng.Uint32N(16))
		case 1:
			a.move(w.rng.Float64()*400, w.rng.Float64()*400, 0)
		case 2:
			kind[a] = nodes[w.rng.IntN(4)]
			g.Changed(a)
		case 3:
			require.NoError(t, w.w.Destroy(w.actors[0]))
			w.actors = w.actors[1:]
		case 4:
			if len(w.clients) < 10 {
				w.deaf()
			}
		case 5:
			if len(w.clients) > 3 {
				w.leave(w.clients[w.rng.IntN(len(w.clients))])
			}
		}
		for _, c := range w.clients {
			if w.rng.IntN(5) == 0 {
				c.peer.SetViewpoint(w.rng.Float64()*400, w.rng.Float64()*400, 0)
			}
			if w.rng.IntN(5) == 0 {
				m := w.rng.Uint32N(16)
				in[c.peer] = m
				var list []Room
				for ; m != 0; m &= m - 1 {
					list = append(list, Room(m&-m), Room(m&-m))
				}
				require.NoError(t, rooms.SetPeer(c.peer, list...))
			}
		}
		w.step()
		for _, c := range w.clients {
			for _, a := range w.actors {
				room := in[c.peer]&a.Team.Get() != 0
				d := dist(c.peer, a)
				near, maybe := d <= 100, d > 100 && d < 140
				rule := map[Node]bool{rooms: room, grid: near, both: room && near, either: room || near}[kind[a]]
				open := maybe && map[Node]bool{grid: true, both: room, either: !room}[kind[a]]
				sees := c.peer.IsRelevant(a)
				if !open && sees != rule {
					t.Fatalf("sees %v: %s", sees, g.ExplainRelevancy(c.peer, a))
				}
				if sees {
					shown++
				}
			}
		}
	}
	require.Greater(t, shown, 5000)
	grid.check(t)
	other := actorrep.NewServer(actorrep.Config{})
	require.ErrorIs(t, rooms.SetPeer(other.AddConn(w.clients[0].s)), ErrNoPeer)
	require.ErrorIs(t, (&Rooms{}).SetPeer(w.clients[0].peer), ErrNoPeer)
}

// evens is a node of a user's: connections see actors whose number is a multiple of theirs.
type evens struct {
	Nop
	g      *Graph
	of     map[*actorrep.Peer]uint32
	actors []*Item
}

func (n *evens) Attach(g *Graph)       { n.g = g }
func (n *evens) AddActor(it *Item)     { n.actors = append(n.actors, it); n.g.LookAll(it) }
func (n *evens) ActorChanged(it *Item) { n.g.LookAll(it) }
func (n *evens) AddPeer(v *Viewer) {
	for _, it := range n.actors {
		n.g.Look(v, it)
	}
}
func (n *evens) See(v *Viewer, it *Item, _ Sight) Sight {
	if k := n.of[v.Peer]; k == 0 || it.Actor.(*idea).N.Get()%k != 0 {
		return Hidden
	}
	return Near
}
func (n *evens) Explain(*Viewer, *Item) string { return "its number decides" }

func TestNodeOfAUser(t *testing.T) {
	n := &evens{of: map[*actorrep.Peer]uint32{}}
	r := newRig(t, &Graph{Route: func(a actorrep.Actor) Node {
		if _, is := a.(*idea); is {
			return n
		}
		return nil
	}}, actorrep.Config{})
	var ideas []*idea
	for i := range 20 {
		a := &idea{}
		a.N.Set(uint32(i))
		require.NoError(t, r.w.Spawn(a))
		ideas = append(ideas, a)
	}
	for k := range 5 {
		c := r.deaf()
		n.of[c.peer] = uint32(k)
		n.AddPeer(r.g.Viewer(c.peer))
		r.step()
		ideas[3].N.Set(uint32(k) * 3)
		r.step()
		for _, a := range ideas {
			require.Equal(t, k > 0 && a.N.Get()%uint32(k) == 0, c.peer.IsRelevant(a))
		}
	}
	require.Equal(t, "its number decides", r.g.ExplainRelevancy(r.clients[0].peer, ideas[1]))
	p := r.spawn(0, 0)
	r.clients[0].peer.SetViewpoint(0, 0, 0)
	r.step()
	require.True(t, r.clients[0].peer.IsRelevant(p))
}
