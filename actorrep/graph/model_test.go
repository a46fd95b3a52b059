package graph

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// model is the naive rule: all pairs, each Step. It knows where both were when they were placed last, as the grid does, but of
// cells it knows nothing.
type model struct {
	grid    *Grid
	actors  map[*thing]*held
	viewers map[*actorrep.Peer]*[levels]held
	seen    map[pair]bool
}

type pair struct {
	p *actorrep.Peer
	a *thing
}

type held struct {
	x, y, z, cull float64
	placed        bool
}

func (s *held) follow(x, y, z, cull, size float64) {
	ok := finite(x, y, z)
	if ok && s.placed && s.cull == cull && square(x-s.x, y-s.y, z-s.z) <= slack*size*slack*size {
		return
	}
	*s = held{x, y, z, cull, ok}
}

func (m *model) step(peers []*client, actors []*thing) {
	used := map[int32]bool{}
	for _, a := range actors {
		if m.actors[a] == nil || a.AlwaysRelevant() || a.OnlyOwner() {
			m.actors[a] = &held{} // not in the grid
		}
		x, y, z := a.Location()
		l := m.grid.level(a.CullDistance())
		m.actors[a].follow(x, y, z, a.CullDistance(), m.grid.size(l))
		if m.actors[a].placed && !a.AlwaysRelevant() && !a.OnlyOwner() {
			used[l] = true
		}
	}
	for _, c := range peers {
		if m.viewers[c.peer] == nil {
			m.viewers[c.peer] = &[levels]held{}
		}
		x, y, z, ok := c.peer.Viewpoint()
		for l := range m.viewers[c.peer] {
			s := &m.viewers[c.peer][l]
			if !ok || !used[int32(l)] {
				*s = held{}
				continue
			}
			s.follow(x, y, z, 0, m.grid.size(int32(l)))
		}
	}
	for _, c := range peers {
		for _, a := range actors {
			k := pair{c.peer, a}
			m.seen[k] = m.sees(c.peer, a, m.seen[k])
		}
	}
}

func (m *model) sees(p *actorrep.Peer, a *thing, was bool) bool {
	switch {
	case a.Owner() == p, p.ViewTarget() == actorrep.Actor(a), a.AlwaysRelevant():
		return true
	case a.OnlyOwner():
		return false
	}
	l := m.grid.level(a.CullDistance())
	s, v := m.actors[a], m.viewers[p][l]
	if !s.placed || !v.placed {
		return false
	}
	enter, leave := reach(a.CullDistance(), m.grid.size(l))
	d := square(s.x-v.x, s.y-v.y, s.z-v.z)
	return d <= enter*enter || was && d <= leave*leave
}

// promise checks what the package says of who sees what, by where things are.
func promise(t testing.TB, g *Grid, p *actorrep.Peer, a *thing) {
	d, cull := dist(p, a), a.CullDistance()
	special := a.Owner() == p || p.ViewTarget() == actorrep.Actor(a) || a.AlwaysRelevant()
	limit := cull*hysteresis + 4.2*slack*g.size(g.level(cull))
	must := special || d <= cull && !a.OnlyOwner()
	may := must || d <= limit*(1+1e-12) && !a.OnlyOwner()
	if sees := p.IsRelevant(a); must && !sees || !may && sees {
		t.Fatalf("seen %v: %v away, seen within %v: %v", sees, d, cull, g.graph.ExplainRelevancy(p, a))
	}
}

// check looks whether the cells are what the placements say.
func (n *Grid) check(t testing.TB) {
	live, places := 0, 0
	for i := range n.cells.cells {
		c := &n.cells.cells[i]
		if i == 0 || len(c.items)+len(c.viewers) == 0 {
			continue
		}
		live++
		require.Equal(t, int32(i), n.cells.find(c.key))
		for at, item := range c.items {
			pl := &n.placed[item]
			require.Equal(t, inCells, n.spots[item].kind)
			require.True(t, pl.box.has(c.key.x, c.key.y))
			require.Equal(t, int32(at)+1, pl.at[pl.box.index(c.key.x, c.key.y)])
			places++
		}
		for at, v := range c.viewers {
			a := n.viewers[v].at[c.key.level]
			require.Equal(t, [2]int32{int32(i), int32(at)}, [2]int32{a.cell, a.place})
			require.NotZero(t, n.viewers[v].in>>c.key.level&1)
		}
	}
	require.Equal(t, live, n.cells.n)
	var inLevel [levels]int
	for _, it := range n.graph.items {
		if it == nil || it.Index >= len(n.placed) || n.spots[it.Index].kind != inCells {
			continue
		}
		pl := &n.placed[it.Index]
		inLevel[n.spots[it.Index].level]++
		for _, at := range pl.at {
			if at != 0 {
				places--
			}
		}
	}
	require.Zero(t, places)
	require.Equal(t, n.inLevel, inLevel)
	for l, k := range inLevel {
		require.Equal(t, k > 0, n.used>>l&1 != 0)
	}
	require.LessOrEqual(t, bits.Len64(n.used), levels)
}

// world is the actors and connections of a model test.
type world struct {
	*rig
	rng    *rand.Rand
	size   float64
	actors []*thing
}

func (w *world) place() (x, y, z float64) {
	x, y, z = (w.rng.Float64()-0.5)*w.size, (w.rng.Float64()-0.5)*w.size, w.rng.Float64()*20
	switch w.rng.IntN(200) {
	case 0:
		x = math.NaN()
	case 1:
		y = math.Inf(1)
	case 2:
		x = -1e300
	case 3:
		y = math.MaxFloat64
	case 4:
		x, y = 1e15, 1e15
	}
	return x, y, z
}

func (w *world) add() {
	a := &thing{}
	a.move(w.place())
	require.NoError(w.t, w.w.Spawn(a))
	a.SetCullDistance([]float64{3, 40, 100, 100, 250, 3000, 1e7}[w.rng.IntN(7)])
	w.actors = append(w.actors, a)
}

func (w *world) anyPeer() *actorrep.Peer {
	if len(w.clients) == 0 || w.rng.IntN(3) == 0 {
		return nil
	}
	return w.clients[w.rng.IntN(len(w.clients))].peer
}

// event changes something.
func (w *world) event() {
	rng := w.rng
	a := w.actors[rng.IntN(len(w.actors))]
	switch rng.IntN(40) {
	case 0, 1, 2:
		w.add()
	case 3, 4, 5:
		if len(w.actors) > 20 {
			i := rng.IntN(len(w.actors))
			require.NoError(w.t, w.w.Destroy(w.actors[i]))
			w.actors = append(w.actors[:i], w.actors[i+1:]...)
		}
	case 6, 7:
		a.SetOwner(w.anyPeer())
	case 8:
		if p := w.anyPeer(); p != nil {
			p.SetViewTarget(a)
		}
	case 9:
		if p := w.anyPeer(); p != nil {
			p.SetViewTarget(nil)
		}
	case 10:
		a.SetAlwaysRelevant(!a.AlwaysRelevant())
	case 11:
		a.SetOnlyOwner(!a.OnlyOwner())
	case 12:
		a.SetCullDistance(rng.Float64() * 500)
	case 13:
		if len(w.clients) < 30 {
			w.deaf()
		}
	case 14:
		if len(w.clients) > 3 {
			w.leave(w.clients[rng.IntN(len(w.clients))])
		}
	case 15:
		a.move(w.place())
	case 16:
		if p := w.anyPeer(); p != nil {
			p.SetViewpoint(w.place())
		}
	default:
		x, y, z := a.Location()
		a.move(x+rng.NormFloat64()*5, y+rng.NormFloat64()*5, z)
	}
}

func (w *world) walk() {
	for _, c := range w.clients {
		x, y, z, ok := c.peer.Viewpoint()
		if !ok && w.rng.IntN(10) == 0 || w.rng.IntN(300) == 0 {
			c.peer.SetViewpoint(w.place())
		} else if ok {
			c.peer.SetViewpoint(x+w.rng.NormFloat64()*3, y+w.rng.NormFloat64()*3, z)
		}
	}
}

func TestModel(t *testing.T) {
	seeds, steps := 4, 400
	if testing.Short() {
		seeds, steps = 2, 200
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			grid := &Grid{CellSize: []float64{0, 1, 30, 1000}[seed%4]}
			w := &world{rig: newRig(t, &Graph{Nodes: []Node{grid}}, actorrep.Config{}), rng: seeded(t, seed), size: 1500}
			m := &model{grid: grid, actors: map[*thing]*held{}, viewers: map[*actorrep.Peer]*[levels]held{}, seen: map[pair]bool{}}
			for range 150 {
				w.add()
			}
			for range 10 {
				w.deaf()
			}
			shown := 0
			for i := range steps {
				for range w.rng.IntN(20) {
					w.event()
				}
				w.walk()
				w.step()
				m.step(w.clients, w.actors)
				for _, c := range w.clients {
					for _, a := range w.actors {
						if m.seen[pair{c.peer, a}] != c.peer.IsRelevant(a) {
							t.Fatalf("step %d: not as the model says: %s", i, w.g.ExplainRelevancy(c.peer, a))
						}
						promise(t, grid, c.peer, a)
						if c.peer.IsRelevant(a) {
							shown++
						}
					}
				}
				if i%20 == 0 {
					grid.check(t)
				}
			}
			require.Greater(t, shown, steps*100, "nothing was seen")
			for len(w.actors) > 0 {
				require.NoError(t, w.w.Destroy(w.actors[0]))
				w.actors = w.actors[1:]
			}
			w.step()
			grid.check(t)
			require.Zero(t, grid.cells.n, "cells of nothing")
		})
	}
}
