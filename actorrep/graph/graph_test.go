package graph

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

func TestDormantIsFoundByLateJoiners(t *testing.T) {
	r := newRig(t, &Graph{}, actorrep.Config{RelevantTimeout: -1})
	first := r.join(1 << 20)
	first.peer.SetViewpoint(0, 0, 0)
	a := r.spawn(50, 0)
	r.steps(10)
	require.NoError(t, a.SetDormant(true))
	r.steps(30)
	require.Contains(t, r.w.Explain(first.peer, a).Text, "dormant")

	compared := r.w.Counters.Compared
	late := r.join(1 << 20)
	late.peer.SetViewpoint(-30, 0, 0)
	far := r.join(1 << 20)
	far.peer.SetViewpoint(5000, 0, 0)
	r.steps(30)
	require.Equal(t, 1, late.w.Len())
	require.Equal(t, 0, far.w.Len())
	require.Equal(t, compared, r.w.Counters.Compared, "a dormant actor was looked at")

	far.peer.SetViewpoint(20, 0, 0)
	first.peer.SetViewpoint(5000, 0, 0)
	r.steps(30)
	require.Equal(t, 1, far.w.Len())
	require.Equal(t, 0, first.w.Len())

	// One that moves in its sleep is where it was, until it is flushed.
	a.move(5000, 0, 0)
	a.FlushDormancy()
	r.steps(30)
	require.Equal(t, []int{1, 0, 0}, []int{first.w.Len(), late.w.Len(), far.w.Len()})
}

func TestComponentsComeAfterTheirParents(t *testing.T) {
	r := newRig(t, &Graph{}, actorrep.Config{RelevantTimeout: -1})
	c := r.join(3000) // room for few actors a Step, and components are a thousand times as urgent
	parents := map[actorrep.Actor]bool{}
	for i := range 60 {
		a := r.spawn(float64(i), 0)
		parents[a] = true
		for range 3 {
			require.NoError(t, r.w.SpawnIn(a, &part{}))
		}
	}
	c.peer.SetViewpoint(0, 0, 0)
	check := func() (n int) {
		for a := range c.w.All {
			if p, is := a.(*part); is {
				require.NotNil(t, p.Parent(), "a component without its parent")
				n++
			}
		}
		for a := range r.w.All {
			if p, is := a.(*part); is {
				require.Equal(t, c.peer.IsRelevant(p.Parent()), c.peer.IsRelevant(p))
			}
		}
		return n
	}
	between := 0
	for range 400 {
		r.step()
		if n := check(); n > 0 && n < 180 {
			between++
		}
	}
	require.Equal(t, 180, check())
	require.Greater(t, between, 10, "there was room for all at once")

	// What is spawned in a parent that is about to leave isn't shown.
	c.peer.SetViewpoint(5000, 0, 0)
	r.step()
	for a := range parents {
		require.NoError(t, r.w.SpawnIn(a, &part{}))
	}
	for range 200 {
		r.step()
		check()
	}
	require.Zero(t, c.w.Len())
	c.peer.SetViewpoint(0, 0, 0)
	r.steps(600)
	require.Equal(t, 240, check())
}

func TestBorderDoesNotFlicker(t *testing.T) {
	grid := &Grid{}
	r := newRig(t, &Graph{Nodes: []Node{grid}}, actorrep.Config{RelevantTimeout: -1})
	c := r.deaf()
	rng := seeded(t, 3)
	var actors []*thing
	for range 2000 {
		actors = append(actors, r.spawn(rng.Float64()*1000, rng.Float64()*1000))
	}
	c.peer.SetViewpoint(512, 512, 0) // a corner of cells of every size
	r.step()
	seen := func() (s []bool) {
		for _, a := range actors {
			s = append(s, c.peer.IsRelevant(a))
		}
		return s
	}
	before := seen()
	for i := range 400 {
		angle := float64(i)
		c.peer.SetViewpoint(512+1.9*math.Cos(angle), 512+1.9*math.Sin(angle), 0)
		for _, a := range actors[:200] {
			a.X.Set(a.X.Get() + float64(i%2*2-1))
		}
		r.step()
	}
	require.Equal(t, before, seen())
	grid.check(t)
}

func TestCoarse(t *testing.T) {
	grid := &Grid{Coarse: true, CellSize: 64}
	w := &world{rig: newRig(t, &Graph{Nodes: []Node{grid}}, actorrep.Config{}), rng: seeded(t, 5), size: 1000}
	for range 300 {
		a := w.spawn(w.rng.Float64()*1000, w.rng.Float64()*1000)
		w.actors = append(w.actors, a)
	}
	c := w.deaf()
	extra := 0
	for range 300 {
		c.peer.SetViewpoint(w.rng.Float64()*1000, w.rng.Float64()*1000, 0)
		w.step()
		for _, a := range w.actors {
			d := dist(c.peer, a)
			switch sees := c.peer.IsRelevant(a); {
			case d <= 100:
				require.True(t, sees)
			case d > 1.1*(100+2*slack*64)+64*math.Sqrt2:
				require.False(t, sees)
			case sees:
				extra++
			}
		}
	}
	require.NotZero(t, extra)
	grid.check(t)
}

func TestYUp(t *testing.T) {
	r := newRig(t, &Graph{Nodes: []Node{&Grid{YUp: true}}}, actorrep.Config{})
	c := r.deaf()
	c.peer.SetViewpoint(0, 0, 0)
	var a, b thing
	a.move(10, 0, 1000)
	b.move(10, 50, 20)
	require.NoError(t, r.w.Spawn(&a))
	require.NoError(t, r.w.Spawn(&b))
	r.step()
	require.False(t, c.peer.IsRelevant(&a))
	require.True(t, c.peer.IsRelevant(&b))
	b.Y.Set(500)
	r.step()
	require.False(t, c.peer.IsRelevant(&b))
}

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

func TestExplain(t *testing.T) {
	rooms := &Rooms{Of: func(a actorrep.Actor, rooms []Room) []Room { return append(rooms, 7, 3) }}
	idle := &Rooms{}
	away := All(rooms, &Grid{})
	g := &Graph{Nodes: []Node{rooms, away, idle}, Far: 2}
	to := map[actorrep.Actor]Node{}
	g.Route = func(a actorrep.Actor) Node { return to[a] }
	r := newRig(t, g, actorrep.Config{})
	p := r.deaf().peer
	say := func(a actorrep.Actor, want string) {
		t.Helper()
		require.Equal(t, want, g.ExplainRelevancy(p, a))
	}
	a, b, bad, none, always, own := r.spawn(162.5, 0), r.spawn(0, 0), r.spawn(math.NaN(), 0), r.spawn(0, 0), &idea{}, &idea{}
	to[b], to[none] = rooms, idle
	always.SetAlwaysRelevant(true)
	own.SetOnlyOwner(true)
	require.NoError(t, r.w.Spawn(always))
	require.NoError(t, r.w.Spawn(own))
	say(a, "it is new and looked at in the next Step")
	r.step()
	say(a, "the connection has no viewpoint; call Peer.SetViewpoint or SetViewTarget")
	p.SetViewpoint(math.Inf(1), 0, 0)
	say(a, "the connection's viewpoint is +Inf, 0, 0, which is nowhere")
	p.SetViewpoint(12.5, 0, 0)
	r.step()
	say(a, "out of range by 50: 150 away, seen within 100")
	p.SetViewpoint(92.5, 0, 0)
	say(a, "within range: 70 away, seen within 100; from the next Step on")
	r.step()
	say(a, "within range, seen as middle: 70 away, seen within 100")
	p.SetViewpoint(58.5, 0, 0)
	r.step()
	say(a, "seen as far, still: 104 away, 4 more than when it comes into sight")
	say(bad, "its location is NaN, 0, 0, which is nowhere")
	say(always, "everybody sees it")
	say(own, "only its owner sees it")
	say(b, "the connection is in no room; call Rooms.SetPeer")
	say(none, "it is in no room")
	require.NoError(t, rooms.SetPeer(p, 9, 2))
	say(b, "in other rooms: it is in [3 7], the connection in [2 9]")
	require.NoError(t, rooms.SetPeer(p, 9, 3))
	say(b, "in the same room: it is in [3 7], the connection in [3 9]")
	to[a] = away
	g.Changed(a)
	p.SetViewpoint(0, 0, 0)
	r.step()
	say(a, "in the same room: it is in [3 7], the connection in [3 9], and out of range by 62.5: 162.5 away, seen within 100")
	a.SetOwner(p)
	r.step()
	say(a, "its owner always sees it")
	p.SetViewTarget(b)
	r.step()
	say(b, "it is the connection's view target")
	require.NoError(t, b.TearOff())
	say(b, "the graph doesn't have it")
	r.leave(r.clients[0])
	say(always, "the graph doesn't have the connection")
	require.Equal(t, []string{"hidden", "near", "middle", "far"}, []string{Hidden.String(), Near.String(), Middle.String(), Far.String()})
}

func TestFrequencyFallsWithDistance(t *testing.T) {
	r := newRig(t, &Graph{Middle: 4, Far: 16}, actorrep.Config{})
	c := r.join(1 << 22)
	c.peer.SetViewpoint(0, 0, 0)
	var near, middle, far [16]*thing
	for i := range near {
		near[i], middle[i], far[i] = r.spawn(10, float64(i)/16), r.spawn(70, float64(i)/16), r.spawn(95, float64(i)/16)
	}
	r.steps(30)
	require.Equal(t, []int{1, 4, 16}, []int{c.peer.UpdateEvery(near[0]), c.peer.UpdateEvery(middle[0]), c.peer.UpdateEvery(far[0])})
	run := func(actors []*thing) (updates, most int) {
		for range 64 {
			for _, a := range actors {
				a.Team.Set(a.Team.Get() + 1)
			}
			before := r.w.Counters.Updates
			r.step()
			n := int(r.w.Counters.Updates - before)
			updates, most = updates+n, max(most, n)
		}
		r.steps(20)
		for _, a := range actors {
			m := c.w.Find(a.GUID()).(*thing)
			require.Equal(t, a.Team.Get(), m.Team.Get(), "the last value didn't come")
		}
		return updates, most
	}
	n, most := run(near[:])
	require.Equal(t, []int{16 * 64, 16}, []int{n, most})
	n, most = run(middle[:])
	require.Equal(t, []int{16 * 16, 4}, []int{n, most})
	n, most = run(far[:])
	require.Equal(t, []int{16 * 4, 1}, []int{n, most}, "the work is spread")

	// What comes near is there at once, and so are its components.
	kid := &part{}
	require.NoError(t, r.w.SpawnIn(far[0], kid))
	r.steps(3)
	require.Equal(t, 16, c.peer.UpdateEvery(kid))
	far[0].Team.Set(1000)
	far[0].X.Set(20)
	r.step()
	require.Equal(t, []int{1, 1}, []int{c.peer.UpdateEvery(far[0]), c.peer.UpdateEvery(kid)})
	r.step()
	require.Equal(t, uint32(1000), c.w.Find(far[0].GUID()).(*thing).Team.Get())
	require.NoError(t, r.w.Destroy(far[1]))
	require.Zero(t, c.peer.UpdateEvery(far[1]))
	r.steps(70)
}

func TestSameBytesEachTime(t *testing.T) {
	run := func() []byte {
		var sent bytes.Buffer
		w := &world{rig: newRig(t, &Graph{Middle: 2, Far: 3}, actorrep.Config{RelevantTimeout: time.Second}), rng: seeded(t, 21), size: 600}
		w.sent = func(p []byte) { sent.Write(p) }
		for range 200 {
			a := w.spawn(w.rng.Float64()*600, w.rng.Float64()*600)
			w.actors = append(w.actors, a)
		}
		for range 6 {
			w.join(20000).peer.SetViewpoint(w.rng.Float64()*600, w.rng.Float64()*600, 0)
		}
		for i := range 150 {
			for range 30 {
				a := w.actors[w.rng.IntN(len(w.actors))]
				a.X.Set(w.rng.Float64() * 600)
			}
			w.clients[i%6].peer.SetViewpoint(w.rng.Float64()*600, w.rng.Float64()*600, 0)
			w.actors[w.rng.IntN(200)].SetOwner(w.clients[i%6].peer)
			w.step()
		}
		return sent.Bytes()
	}
	first := run()
	require.Greater(t, len(first), 50_000)
	require.True(t, bytes.Equal(first, run()))
}
