package graph

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Grid shows actors to connections within their cull distance. It has no bounds; it keeps the cells that something is in.
//
// Cells come in sizes, each twice the one before. An actor is in cells about as large as half its cull distance, 25 at
// most, and a connection in one of each size in use; so actors of any cull distance cost the same.
//
// An actor without a Location or a cull distance, or with one of more than 2^39 of the smallest cells, is seen everywhere; one whose
// location isn't finite is nowhere. A connection without a viewpoint, or with one that isn't finite, sees nothing here
// but what is seen everywhere.
type Grid struct {
	// CellSize is the size of the smallest cells, in the unit of locations. Default 16. It matters only for actors with smaller
	// cull distances, which are put there.
	CellSize float64
	// Coarse leaves out the test of distance: a connection sees all that touches its cell, which is about twice as much.
	Coarse bool
	// YUp says that the ground is x and z, and y is the height. Cells lie on the ground; distances are those in space.
	YUp bool

	graph      *Graph
	cells      cellTable
	placed     []placement // by index of an item
	everywhere itemList
	viewers    []*gridViewer // by index of a viewer
	inLevel    [levels]int   // actors
	used       uint64        // levels with actors
}

const (
	levels = 40
	// slack is how far, in parts of a cell, an actor or a connection moves before it is placed again.
	slack = 1. / 16
	// hysteresis is how much farther an actor must be to be hidden than to be shown.
	hysteresis = 1.1
	maxCell    = 1 << 30 // beyond, all is in the last cell
	maxSide    = 6       // cells that a circle touches in a row: its diameter is 4 cells at most
)

// placement is where an actor is in a grid.
type placement struct {
	kind         placeKind
	level        int32
	x, y, z      float64 // where it was when it was placed
	cull         float64
	enter, leave float64 // squares of the distances
	box          box
	at           [maxSide * maxSide]int32 // its place in the cells of the box plus 1, row by row; 0: it isn't in that one
}

type placeKind uint8

const (
	out        placeKind = iota // not in the grid
	nowhere                     // its location isn't finite
	everywhere                  // seen from anywhere
	inCells
)

// box is cells from x0, y0 to x1, y1.
type box struct{ x0, y0, x1, y1 int32 }

func (b box) has(x, y int32) bool { return x >= b.x0 && x <= b.x1 && y >= b.y0 && y <= b.y1 }
func (b box) index(x, y int32) int32 {
	return (y-b.y0)*(b.x1-b.x0+1) + x - b.x0
}

// Attach keeps the graph.
func (n *Grid) Attach(g *Graph) {
	n.graph = g
	if !(n.CellSize > 0) || math.IsInf(n.CellSize, 1) {
		n.CellSize = 16
	}
}

func (n *Grid) size(level int32) float64 { return math.Ldexp(n.CellSize, int(level)) }

// AddActor places an actor.
func (n *Grid) AddActor(it *Item) {
	n.placed = grown(n.placed, it.Index)
	n.ActorChanged(it)
}

// RemoveActor takes one out.
func (n *Grid) RemoveActor(it *Item) {
	pl := &n.placed[it.Index]
	n.takeOut(it, pl)
	pl.kind = out
}

// takeOut is the part of it that leaves pl as it is.
func (n *Grid) takeOut(it *Item, pl *placement) {
	switch pl.kind {
	case everywhere:
		n.everywhere.remove(it)
	case inCells:
		n.eachCell(pl, func(c, i int32) { n.takeFrom(c, pl.at[i]-1) })
		n.count(pl.level, -1)
	}
}

// count keeps the number of a level's actors. With its first the connections are placed in it, with its last they go in the
// next Update.
func (n *Grid) count(level int32, by int) {
	was := n.inLevel[level]
	n.inLevel[level] += by
	switch {
	case was == 0:
		n.used |= 1 << level
		for _, v := range n.graph.viewers {
			if gv := n.viewers[v.Index]; gv.in>>level&1 == 0 {
				n.moveViewer(gv, 1<<level)
			}
		}
	case n.inLevel[level] == 0:
		n.used &^= 1 << level
	}
}

// eachCell calls f for the cells an actor is in, and the index into its places.
func (n *Grid) eachCell(pl *placement, f func(c, i int32)) {
	i := int32(0)
	for y := pl.box.y0; y <= pl.box.y1; y++ {
		for x := pl.box.x0; x <= pl.box.x1; x++ {
			if pl.at[i] != 0 {
				f(n.cells.find(cellKey{pl.level, x, y}), i)
			}
			i++
		}
	}
}

// takeFrom takes the actor at a place out of a cell.
func (n *Grid) takeFrom(c, at int32) {
	it := &n.cells.cells[c]
	last := len(it.items) - 1
	other := it.items[last]
	it.items[at] = other
	it.items = it.items[:last]
	if int(at) != last {
		pl := &n.placed[other]
		pl.at[pl.box.index(it.key.x, it.key.y)] = at + 1
	}
	n.cells.drop(c)
}

// location is where an actor is, with the height last; located is false when that plays no role.
func (n *Grid) location(a actorrep.Actor) (x, y, z, cull float64, located bool) {
	l, ok := a.(actorrep.Located)
	cull = actorrep.BaseOf(a).CullDistance()
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

// ActorChanged places an actor again if it has moved far enough.
func (n *Grid) ActorChanged(it *Item) {
	pl := &n.placed[it.Index]
	x, y, z, cull, located := n.location(it.Actor)
	level := pl.level
	if cull != pl.cull {
		level = n.level(cull)
	}
	switch {
	case !located || level >= levels:
		n.resettle(it, pl, everywhere)
		return
	case !finite(x, y, z):
		n.resettle(it, pl, nowhere)
		return
	case pl.kind == inCells && pl.cull == cull:
		if d := slack * n.size(level); square(x-pl.x, y-pl.y, z-pl.z) <= d*d {
			return
		}
	}
	n.move(it, pl, x, y, z, cull, level)
}

func square(x, y, z float64) float64 { return x*x + y*y + z*z }

// resettle takes an actor out of the cells.
func (n *Grid) resettle(it *Item, pl *placement, kind placeKind) {
	if pl.kind == kind {
		return
	}
	n.takeOut(it, pl)
	pl.kind = kind
	if kind == everywhere {
		n.everywhere.add(it)
	}
	n.graph.LookAll(it)
}

// reach is from how far an actor is shown, and hidden, when both ends are where they were placed: each may have moved by the
// slack since.
func reach(cull, size float64) (enter, leave float64) {
	enter = cull + 2*slack*size
	return enter, enter * hysteresis
}

// level is the size of cells for a cull distance: the circle spans 4 of them at most.
func (n *Grid) level(cull float64) int32 {
	for l := int32(0); l < levels; l++ {
		if _, leave := reach(cull, n.size(l)); leave <= 2*n.size(l) {
			return l
		}
	}
	return levels
}

// move places an actor and looks at all connections in the cells it was in or is in.
func (n *Grid) move(it *Item, pl *placement, x, y, z, cull float64, level int32) {
	size := n.size(level)
	enter, leave := reach(cull, size)
	now := placement{kind: inCells, level: level, x: x, y: y, z: z, cull: cull, enter: enter * enter, leave: leave * leave}
	now.box = box{cellOf(x-leave, size), cellOf(y-leave, size), cellOf(x+leave, size), cellOf(y+leave, size)}
	was := *pl
	lookAll := was.kind == everywhere
	if was.kind == everywhere {
		n.everywhere.remove(it)
	}
	if was.kind != inCells || was.level != level {
		n.count(level, 1)
	}
	stays := func(x, y int32) bool { return was.kind == inCells && was.level == level && was.box.has(x, y) }
	*pl = now
	i := int32(0)
	for cy := pl.box.y0; cy <= pl.box.y1; cy++ {
		for cx := pl.box.x0; cx <= pl.box.x1; cx++ {
			if touches(cx, cy, size, x, y, leave) {
				at := int32(0)
				if stays(cx, cy) {
					old := was.box.index(cx, cy)
					at, was.at[old] = was.at[old], 0
				}
				if at == 0 {
					at = n.putInto(n.cells.get(cellKey{level, cx, cy}), it)
				}
				pl.at[i] = at
			}
			i++
		}
	}
	if was.kind == inCells {
		n.leaveCells(it, &was)
		if was.level != level {
			n.count(was.level, -1)
		}
	}
	if lookAll {
		n.graph.LookAll(it)
		return
	}
	n.eachCell(pl, func(c, _ int32) { n.lookIn(c, it) })
}

// leaveCells takes an actor out of the cells that was still names.
func (n *Grid) leaveCells(it *Item, was *placement) {
	n.eachCell(was, func(c, i int32) {
		n.lookIn(c, it)
		n.takeFrom(c, was.at[i]-1)
	})
}

// lookIn looks at an actor for the connections in a cell.
func (n *Grid) lookIn(c int32, it *Item) {
	for _, v := range n.cells.cells[c].viewers {
		n.graph.Look(n.viewers[v].v, it)
	}
}

func (n *Grid) putInto(c int32, it *Item) (at int32) {
	items := &n.cells.cells[c].items
	*items = append(*items, int32(it.Index))
	return int32(len(*items))
}

// cellOf is the cell a coordinate is in.
func cellOf(x, size float64) int32 {
	return int32(min(max(math.Floor(x/size), -maxCell), maxCell))
}

// touches reports whether a circle touches a cell. The last cells have no end.
func touches(cx, cy int32, size, x, y, r float64) bool {
	if max(cx, cy) >= maxCell || min(cx, cy) <= -maxCell {
		return true
	}
	dx := x - min(max(x, float64(cx)*size), float64(cx+1)*size)
	dy := y - min(max(y, float64(cy)*size), float64(cy+1)*size)
	// A little more than the circle, for what is rounded.
	return dx*dx+dy*dy <= r*r*(1+1e-9)
}

// See is the test of distance, between where both were placed.
func (n *Grid) See(v *Viewer, it *Item, was Sight) Sight {
	if it.Index >= len(n.placed) || v.Index >= len(n.viewers) || n.viewers[v.Index] == nil {
		return Hidden
	}
	pl, gv := &n.placed[it.Index], n.viewers[v.Index]
	switch pl.kind {
	case everywhere:
		return Near
	case out, nowhere:
		return Hidden
	}
	if gv.in>>pl.level&1 == 0 {
		return Hidden
	}
	a := &gv.at[pl.level]
	d := square(a.x-pl.x, a.y-pl.y, a.z-pl.z)
	if n.Coarse {
		if k := n.cells.cells[a.cell].key; !pl.box.has(k.x, k.y) || pl.at[pl.box.index(k.x, k.y)] == 0 {
			return Hidden
		}
	} else if d > pl.leave || was == Hidden && d > pl.enter {
		return Hidden
	}
	switch part := d / (pl.cull * pl.cull); {
	case part < middleFrom*middleFrom:
		return Near
	case part < farFrom*farFrom:
		return Middle
	}
	return Far
}

// The parts of the cull distance from which actors are seen from the middle and from far.
const (
	middleFrom = 1. / 2
	farFrom    = 3. / 4
)

// Update moves the connections.
func (n *Grid) Update(time.Duration) {
	for _, v := range n.graph.viewers {
		gv := n.viewers[v.Index]
		n.moveViewer(gv, n.used|gv.in)
	}
}
