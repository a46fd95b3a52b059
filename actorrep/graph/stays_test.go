package graph

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

func stays(g *Graph, a actorrep.Actor) bool {
	is := []bool{true}
	g.Stays([]actorrep.Actor{a}, is)
	return is[0]
}

// TestStays: an actor stays only where nothing but the grid decides, while its cells hold it: not one that has moved far enough, that was just added, perhaps
// in the place of another one, that isn't in the graph, or that another node shows.
func TestStays(t *testing.T) {
	grid, other := &Grid{}, &Grid{}
	both := All(grid, other)
	g := &Graph{Nodes: []Node{grid, other, both}}
	routes := map[actorrep.Actor]Node{}
	g.Route = func(a actorrep.Actor) Node { return routes[a] }
	r := newRig(t, g, actorrep.Config{})
	r.deaf() // without connections nothing is placed
	alone := r.spawn(10, 10)
	shared, apart := &thing{}, &thing{}
	routes[shared], routes[apart] = both, other
	require.NoError(t, r.w.Spawn(shared))
	require.NoError(t, r.w.Spawn(apart))
	require.False(t, stays(g, alone), "it has no cells yet")
	r.step()
	require.True(t, stays(g, alone))
	require.False(t, stays(g, shared), "another node decides too")
	require.False(t, stays(g, apart), "it is in another grid")

	x, _, _ := alone.Location()
	alone.X.Set(x + 1)
	require.True(t, stays(g, alone))
	alone.X.Set(x + 100)
	require.False(t, stays(g, alone), "it has moved")
	alone.X.Set(x)
	alone.SetCullDistance(50)
	require.False(t, stays(g, alone), "its cull distance is another")
	r.step()
	require.True(t, stays(g, alone))

	index, _ := relevancyIndex(alone)
	require.NoError(t, r.w.Destroy(alone))
	require.False(t, stays(g, alone), "it has gone")
	next := r.spawn(10, 10)
	was, _ := relevancyIndex(next)
	require.Equal(t, index, was)
	require.False(t, stays(g, next), "it has no cells yet, in the place of one that had these")
	r.step()
	require.True(t, stays(g, next))

	neighbour := r.spawn(10, 10)
	r.step()
	own, _ := relevancyIndex(neighbour)
	setRelevancyIndex(next, own)
	require.False(t, stays(g, next), "its number is another graph's")
	setRelevancyIndex(next, was)
	require.True(t, stays(g, next))

	elsewhere := newRig(t, &Graph{}, actorrep.Config{})
	elsewhere.deaf()
	for range 8 {
		a := elsewhere.spawn(10, 10)
		elsewhere.step()
		require.True(t, stays(elsewhere.g, a))
	}
	strange := &thing{}
	require.False(t, stays(g, strange), "it is in no world")
}

// TestStaysAsItsItem: after any changes Stays says what the item and its place do.
func TestStaysAsItsItem(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 14))
	grid := &Grid{}
	both := All(grid, &Grid{})
	routes := map[actorrep.Actor]Node{}
	g := &Graph{Nodes: []Node{grid, both}, Route: func(a actorrep.Actor) Node { return routes[a] }}
	r := newRig(t, g, actorrep.Config{})
	r.deaf() // without connections nothing is placed
	var all []*thing
	stayed, left := 0, 0
	for range 3000 {
		switch k := rng.IntN(4); {
		case k == 0 || len(all) < 5:
			all = append(all, r.spawn(rng.Float64()*100, rng.Float64()*100))
		case k == 1:
			i := rng.IntN(len(all))
			require.NoError(t, r.w.Destroy(all[i]))
			require.False(t, stays(g, all[i]))
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		case k == 2:
			a := all[rng.IntN(len(all))]
			a.move(a.X.Get()+rng.NormFloat64()*4, a.Y.Get(), 0)
		default:
			a := all[rng.IntN(len(all))]
			if routes[a] = nil; rng.IntN(3) == 0 {
				routes[a] = both
			}
			g.Changed(a)
		}
		for _, a := range all {
			it := g.Item(a)
			x, y, z, cull, located := grid.location(a)
			want := it.node == Node(grid) && located && grid.holds(it.Index, x, y, z, cull)
			require.Equal(t, want, stays(g, a))
			if want {
				stayed++
			} else {
				left++
			}
		}
		if rng.IntN(3) == 0 {
			r.step()
		}
	}
	require.Greater(t, stayed, 1000)
	require.Greater(t, left, 1000)
}

// TestSpotIsALine: a spot is as large as a line of the cache, so that none of an array's lies in two.
func TestSpotIsALine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.EqualValues(t, 64, unsafe.Sizeof(spot{}))
	}
}
