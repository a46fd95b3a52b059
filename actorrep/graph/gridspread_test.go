package graph

import (
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// looked does a Step and returns at how many actors connections looked because they were placed again, at how many those that had to wait would have,
// and the most of one connection's.
func (r *rig) looked(n *Grid) (looks, waiting, one int) {
	type placed struct {
		anchor
		in bool
	}
	was := make([][levels]placed, len(n.viewers))
	for i, gv := range n.viewers {
		for l := range levels {
			was[i][l] = placed{gv.at[l], gv.in>>l&1 != 0}
		}
	}
	size := func(c int32) int { return len(n.cells.cells[c].items) }
	r.step()
	for i, gv := range n.viewers {
		x, y, z, ok := n.viewpoint(gv)
		for rest := n.used | gv.in; rest != 0; rest &= rest - 1 {
			l := bits.TrailingZeros64(rest)
			a, old := gv.at[l], was[i][l]
			in := gv.in>>l&1 != 0
			cost := 0
			if old.in {
				cost += size(old.cell)
			}
			if in && (!old.in || a.cell != old.cell) {
				cost += size(a.cell)
			}
			switch {
			case in != old.in || in && (a.x != old.x || a.y != old.y || a.z != old.z):
				looks += cost
				one = max(one, cost)
			case ok && !in, in && square(x-a.x, y-a.y, z-a.z) > square(slack*n.size(int32(l)), 0, 0):
				waiting += cost
			}
		}
	}
	return looks, waiting, one
}

// crowd is connections amid actors.
func crowd(t *testing.T, conns, actors int) (*rig, *Grid) {
	n := &Grid{}
	r := newRig(t, &Graph{Nodes: []Node{n}}, actorrep.Config{})
	for i := range actors {
		r.spawn(float64(i%200)*2, float64(i/200)*2)
	}
	for range conns {
		r.deaf()
	}
	r.step()
	return r, n
}

// TestLooksAreSpread: connections that come at once, and those that walk side by side, are placed over several Steps; an Update's looks are bounded, and even.
func TestLooksAreSpread(t *testing.T) {
	const conns, actors = 50, 2400
	r, n := crowd(t, conns, actors)
	for i, c := range r.clients {
		c.peer.SetViewpoint(180+float64(i%8), float64(i/8), 0)
	}
	steps := 0
	for rest := conns; rest > 0; steps++ {
		looks, _, one := r.looked(n)
		require.LessOrEqual(t, looks, max(stepLooks, conns*actors/looksPart, one))
		rest = 0
		for _, gv := range n.viewers {
			if gv.in != n.used {
				rest++
			}
		}
		require.Less(t, steps, 60)
	}
	require.Greater(t, steps, 3, "it isn't spread")

	// They walk at one speed, from the same Step on.
	var all []int
	for i := range 160 {
		for _, c := range r.clients {
			x, y, _, _ := c.peer.Viewpoint()
			c.peer.SetViewpoint(x+0.5*math.Cos(float64(i)/30), y+0.5*math.Sin(float64(i)/30), 0)
		}
		looks, waiting, one := r.looked(n)
		require.LessOrEqual(t, looks, max(stepLooks, conns*actors/looksPart, one), "Step %d", i)
		if i >= 40 {
			all = append(all, looks)
			require.Less(t, waiting, conns*actors/4, "Step %d", i)
			for _, gv := range n.viewers {
				l := bits.TrailingZeros64(gv.in)
				a := &gv.at[l]
				x, y, z, _ := n.viewpoint(gv)
				require.LessOrEqual(t, square(x-a.x, y-a.y, z-a.z), square(2*slack*n.size(int32(l)), 0, 0), "Step %d: one lags behind", i)
			}
		}
	}
	sum, most := 0, 0
	for _, k := range all {
		sum, most = sum+k, max(most, k)
	}
	require.Less(t, most*len(all), 5*sum/2, "%v", all)
}

// TestLooksByUrgency: who leaps is placed before those that walk, and who waits has its turn, though others leap in every Step.
func TestLooksByUrgency(t *testing.T) {
	r, n := crowd(t, 50, 2400)
	for _, c := range r.clients {
		c.peer.SetViewpoint(180, 30, 0)
	}
	for range 20 {
		r.step()
	}
	l := bits.TrailingZeros64(n.used)
	walker, d := r.clients[0].peer, 1.01*slack*n.size(int32(l))
	walker.SetViewpoint(180+d, 30, 0)
	waited := 0
	for placed := false; !placed; waited++ {
		for _, c := range r.clients[1:] {
			c.peer.SetViewpoint(180+float64((waited+1)%2*40), 30, 0)
		}
		r.step()
		placed = n.viewers[0].at[l].x > 180
		require.Less(t, waited, 40)
	}
	require.Greater(t, waited, 1, "it didn't have to wait for those that leap")
}
