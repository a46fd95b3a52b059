package graph

import (
	"errors"
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Grid shows actors to connections within their cull distance. It has no bounds: only non-empty cells are stored.
//
// Cells have several sizes, each twice the one before. An actor is in cells about half as large as its cull distance, in
// 25 at most. A connection is in one cell of each size in use. So an actor's cost doesn't depend on its cull distance.
//
// An actor without a Location or a cull distance, or with a cull distance above 2^39 of the smallest cells, is seen from
// everywhere. One whose location isn't finite isn't seen. A connection without a viewpoint, or with one that isn't
// finite, sees only actors that are seen from everywhere. When no connection had a viewpoint for 10 s, Config.Failed is
// told once (ErrNoViewpoint).
//
// With Graph.Middle or Graph.Far, actors are seen as Middle from half of their cull distance on, and as Far from three
// quarters on.
type Grid struct {
	// CellSize is the size of the smallest cells, in the unit of locations. Default 16, also for what isn't above 0 and below 1e100. It
	// matters only for actors with smaller cull distances: they use these cells.
	CellSize float64
	// Coarse skips the test of distance. A connection then sees all actors that touch its cell, about twice as many.
	Coarse bool
	// YUp says that y is the height, and the ground is x and z. Cells lie on the ground. Distances are
	// three-dimensional.
	YUp bool

	graph      *Graph
	cells      cellTable
	spots      []spot      // by index of an item
	placed     []placement // the same
	everywhere itemList
	viewers    []*gridViewer // by index of a viewer
	inLevel    [levels]int   // actors
	used       uint64        // levels with actors
	bands      bool          // Middle or Far is used
	moves      []move        // in this Update
	sighted    bool          // some connection had a viewpoint
}

// ErrNoViewpoint is given to Config.Failed, once, when connections have been there for 10 s and none of them ever had a viewpoint.
var ErrNoViewpoint = errors.New("graph: no connection has had a viewpoint, so that none sees the actors in a Grid; call Peer.SetViewTarget with a player's actor, or Peer.SetViewpoint")

// blindFor is how long connections may be without a viewpoint before the game is told: longer than a spawn takes.
const blindFor = 10 * time.Second

const (
	levels = 40
	// slack is how far an actor or a connection moves before it is placed again, as a fraction of a cell.
	slack = 1. / 16
	// hysteresis: an actor that is seen stays so up to this many times its cull distance.
	hysteresis = 1.1
	// maxCellSize: a place beside an actor at the end of the numbers, and the square of a distance within its cull distance, are finite.
	maxCellSize = 1e100
	maxCell     = 1 << 30 // coordinates beyond are in the last cell
	maxSide     = 6       // cells that a circle touches in a row: its diameter is 4 cells at most

	// The fractions of the cull distance from which actors are seen as Middle and as Far.
	middleFrom = 1. / 2
	farFrom    = 3. / 4
)

// spot is an actor's position in a grid: what the tests of distance and of whether it has moved need, in one cache line. Its size is a line's.
type spot struct {
	x, y, z      float64 // where it was placed
	enter, leave float64 // squares of distances
	cull         float64 // its cull distance
	level        int32
	id           netguid.GUID // the actor's
	kind         spotKind
	alone        bool // only the grid decides
}

type spotKind uint8

const (
	out        spotKind = iota // not in the grid
	nowhere                    // its location isn't finite
	everywhere                 // seen from anywhere
	inCells
)

// Attach stores the graph.
func (n *Grid) Attach(g *Graph) {
	n.graph = g
	n.bands = g.Middle > 1 || g.Far > 1
	if !(n.CellSize > 0 && n.CellSize < maxCellSize) {
		n.CellSize = 16
	}
	watch(g.world, n.blind, ErrNoViewpoint)
}

// blind reports whether there is something to see in cells, and nobody has ever had a viewpoint to see it from.
func (n *Grid) blind() (waits bool) {
	if n.sighted || n.used == 0 {
		return false
	}
	for _, v := range n.graph.viewers {
		if _, _, _, n.sighted = v.Peer.Viewpoint(); n.sighted {
			return false
		}
		waits = waits || !v.Peer.IsReplay() && n.graph.world.Now()-v.joined > blindFor
	}
	return waits
}

func (n *Grid) size(level int32) float64 { return n.CellSize * float64(uint64(1)<<(level&63)) }

// reach is the distances at which an actor is shown and hidden, measured between the placed positions. Each may have
// moved by the slack since.
func reach(cull, size float64) (enter, leave float64) {
	enter = cull + 2*slack*size
	return enter, enter * hysteresis
}

// level is the level of cells for a cull distance: a circle spans at most 4 of its cells.
func (n *Grid) level(cull float64) int32 {
	for l := int32(0); l < levels; l++ {
		if _, leave := reach(cull, n.size(l)); leave <= 2*n.size(l) {
			return l
		}
	}
	return levels
}

// location is an actor's position, with the height last. located is false when it doesn't matter.
func (n *Grid) location(a actorrep.Actor) (x, y, z, cull float64, located bool) {
	l, ok := a.(actorrep.Located)
	cull = baseOf(a).CullDistance()
	if !ok || !(cull > 0) {
		return 0, 0, 0, 0, false
	}
	x, y, z = l.Location()
	if n.YUp {
		y, z = z, y
	}
	return x, y, z, cull, true
}

func finite(x, y, z float64) bool { return !math.IsNaN(x-x) && !math.IsNaN(y-y) && !math.IsNaN(z-z) }

func square(x, y, z float64) float64 { return x*x + y*y + z*z }

// See compares the distance of the placed positions.
func (n *Grid) See(v *Viewer, it *Item, was Sight) Sight {
	if it.Index >= len(n.spots) || v.Index >= len(n.viewers) || n.viewers[v.Index] == nil {
		return Hidden
	}
	return n.see(n.viewers[v.Index], int32(it.Index), was)
}

func (n *Grid) see(gv *gridViewer, i int32, was Sight) Sight {
	s := &n.spots[i]
	switch s.kind {
	case everywhere:
		return Near
	case out, nowhere:
		return Hidden
	}
	if gv.in>>s.level&1 == 0 {
		return Hidden
	}
	a := &gv.at[s.level]
	d := square(a.x-s.x, a.y-s.y, a.z-s.z)
	if n.Coarse {
		k, pl := n.cells.cells[a.cell].key, &n.placed[i]
		if !pl.box.has(k.x, k.y) || pl.at[pl.box.index(k.x, k.y)] == 0 {
			return Hidden
		}
	} else if d > s.leave || was == Hidden && d > s.enter {
		return Hidden
	}
	switch {
	case !n.bands || d < s.cull*s.cull*middleFrom*middleFrom:
		return Near
	case d < s.cull*s.cull*farFrom*farFrom:
		return Middle
	}
	return Far
}

// look has a pair decided again, unless only the grid decides and its answer is the same.
func (n *Grid) look(gv *gridViewer, i int32) {
	if n.spots[i].alone {
		if was := gv.v.sees(int(i)); n.see(gv, i, was) == was {
			return
		}
	}
	n.graph.Look(gv.v, n.graph.items[i])
}

var _ Node = (*Grid)(nil)
