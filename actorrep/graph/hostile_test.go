package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// TestHostilePlaces: whatever places, viewpoints and cull distances a game takes from its clients, infinite, nowhere, or at the ends of what numbers can say, in cells of any size:
// who is near sees, who is far or nowhere doesn't, and the cells stay as few as there are actors and connections for.
func TestHostilePlaces(t *testing.T) {
	const seed = 6
	rng := seeded(t, seed)
	ends := []float64{0, math.Copysign(0, -1), 1, -1, 99, 1e3, -1e9, 1e15, 16 * maxCell, -16 * maxCell, 16*maxCell + 8, 1e154, 1e300, -1e300, math.MaxFloat64, -math.MaxFloat64,
		math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64}
	culls := []float64{0, -1, 1, 100, 1e6, 1e12, 1e15, 1e154, 1e300, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64, 1e-300}
	for _, size := range []float64{0, math.NaN(), math.Inf(1), -5, 16, 1e-300, math.SmallestNonzeroFloat64, 1e300, math.MaxFloat64} {
		grid := &Grid{CellSize: size}
		r := newRig(t, &Graph{Nodes: []Node{grid}}, actorrep.Config{})
		var all []*thing
		for range 60 {
			all = append(all, r.spawn(0, 0))
		}
		for range 6 {
			r.deaf()
		}
		place := func() float64 { return ends[rng.IntN(len(ends))] }
		for range 60 {
			for _, a := range all {
				if rng.IntN(3) == 0 {
					a.move(place(), place(), place())
				}
				if rng.IntN(10) == 0 {
					a.SetCullDistance(culls[rng.IntN(len(culls))])
				}
			}
			for _, c := range r.clients {
				if rng.IntN(2) == 0 {
					c.peer.SetViewpoint(place(), place(), place())
				}
			}
			r.step()
			grid.check(t)
			require.LessOrEqual(t, grid.cells.n, maxSide*maxSide*len(all)+levels*len(r.clients))
		}
		r.steps(60) // all connections are placed
		for _, c := range r.clients {
			x, y, z, _ := c.peer.Viewpoint()
			for _, a := range all {
				ax, ay, az := a.Location()
				cull := a.CullDistance()
				far := grid.level(cull) >= levels
				switch sees := c.peer.IsRelevant(a); {
				case !(cull > 0) || far:
					require.True(t, sees, "seen from everywhere: %v", cull)
				case !finite(ax, ay, az) || !finite(x, y, z):
					require.False(t, sees, "nowhere")
				case dist(c.peer, a) <= cull:
					require.True(t, sees, "%v away, %v", dist(c.peer, a), cull)
				case dist(c.peer, a) > 1.2*cull+grid.size(grid.level(cull)):
					require.False(t, sees, "%v away, %v", dist(c.peer, a), cull)
				}
				require.NotEmpty(t, r.g.ExplainRelevancy(c.peer, a))
			}
		}
		for _, a := range all {
			require.NoError(t, r.w.Destroy(a))
		}
		r.steps(60)
		grid.check(t)
		require.Zero(t, grid.cells.n, "cells of nothing")
	}
}
