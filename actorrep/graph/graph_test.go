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
	say(a, "within range: 70 away, seen within 100; from one of the next Steps on")
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

func TestManyPeersAndAnyRadius(t *testing.T) {
	grid := &Grid{}
	w := &world{rig: newRig(t, &Graph{Nodes: []Node{grid}}, actorrep.Config{}), rng: seeded(t, 31), size: 4000}
	for i := range 300 {
		a := w.spawn((w.rng.Float64()-0.5)*w.size, (w.rng.Float64()-0.5)*w.size)
		a.SetCullDistance([]float64{math.SmallestNonzeroFloat64, 1e-3, 1, 16, 77, 1234, 1e6, 1e12, 1e13, 1e300, math.Inf(1)}[i%11])
		w.actors = append(w.actors, a)
	}
	for range 300 {
		w.deaf().peer.SetViewpoint((w.rng.Float64()-0.5)*w.size, (w.rng.Float64()-0.5)*w.size, 0)
	}
	w.clients[5].peer.SetViewpoint(1e12, -1e12, 0)
	for range 3 {
		w.step()
		for _, c := range w.clients {
			for _, a := range w.actors {
				promise(t, grid, c.peer, a)
			}
		}
		w.walk()
		for _, a := range w.actors {
			a.SetCullDistance(a.CullDistance() * (0.5 + w.rng.Float64()))
		}
	}
	grid.check(t)
	for len(w.clients) > 0 {
		w.leave(w.clients[0])
	}
	require.Empty(t, w.g.viewers)
	for _, a := range w.actors {
		require.NoError(t, w.w.Destroy(a))
	}
	require.Zero(t, grid.cells.n)
	require.Empty(t, w.g.queue, "the queue of a world without connections")
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
