package graph

import (
	"math"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// placement is which cells of a grid an actor is in.
type placement struct {
	box box
	at  [maxSide * maxSide]int32 // its place in the cells of the box plus 1, row by row; 0: it isn't in that one
}

// box is cells from x0, y0 to x1, y1.
type box struct{ x0, y0, x1, y1 int32 }

func (b box) has(x, y int32) bool { return x >= b.x0 && x <= b.x1 && y >= b.y0 && y <= b.y1 }
func (b box) index(x, y int32) int32 {
	return (y-b.y0)*(b.x1-b.x0+1) + x - b.x0
}

// AddActor places an actor.
func (n *Grid) AddActor(it *Item) {
	n.spots, n.placed = grown(n.spots, it.Index), grown(n.placed, it.Index)
	s := &n.spots[it.Index]
	s.id, s.alone = baseOf(it.Actor).GUID(), it.node == Node(n)
	n.ActorChanged(it)
}

// RemoveActor removes an actor.
func (n *Grid) RemoveActor(it *Item) {
	n.takeOut(it)
	n.spots[it.Index].kind = out
}

// takeOut removes an actor from the cells and leaves its spot as it is.
func (n *Grid) takeOut(it *Item) {
	s, pl := &n.spots[it.Index], &n.placed[it.Index]
	switch s.kind {
	case everywhere:
		n.everywhere.remove(it)
	case inCells:
		n.eachCell(s.level, pl, func(c, i int32) { n.takeFrom(c, pl.at[i]-1) })
		n.count(s.level, -1)
	}
}

// count counts a level's actors. With the first the connections are placed in the level; with the last they leave it in
// the next Update.
func (n *Grid) count(level int32, by int) {
	was := n.inLevel[level]
	n.inLevel[level] += by
	switch {
	case was == 0:
		n.used |= 1 << level
		for _, v := range n.graph.viewers {
			gv := n.viewers[v.Index]
			if x, y, z, ok := n.viewpoint(gv); ok && gv.in>>level&1 == 0 {
				n.moveViewer(gv, int(level), x, y, z)
			}
		}
	case n.inLevel[level] == 0:
		n.used &^= 1 << level
	}
}

// eachCell calls f for the cells an actor is in, and the index into its places.
func (n *Grid) eachCell(level int32, pl *placement, f func(c, i int32)) {
	i := int32(0)
	for y := pl.box.y0; y <= pl.box.y1; y++ {
		for x := pl.box.x0; x <= pl.box.x1; x++ {
			if pl.at[i] != 0 {
				f(n.cells.find(cellKey{level, x, y}), i)
			}
			i++
		}
	}
}

// takeFrom removes the actor at an index from a cell.
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

// ActorChanged places an actor again if it has moved far enough.
func (n *Grid) ActorChanged(it *Item) {
	s := &n.spots[it.Index]
	x, y, z, cull, located := n.location(it.Actor)
	level := s.level
	if cull != s.cull {
		level = n.level(cull)
	}
	switch {
	case !located || level >= levels:
		n.resettle(it, everywhere)
		return
	case !finite(x, y, z):
		n.resettle(it, nowhere)
		return
	case n.holds(it.Index, x, y, z, cull):
		return
	}
	n.move(it, x, y, z, cull, level)
}

// fetch reads a little of the spots of actors, so that the waits for memory overlap. The sum has no meaning.
//
//go:noinline
func (n *Grid) fetch(actors []actorrep.Actor) (sum int) {
	for _, a := range actors {
		if index, _ := relevancyIndex(a); uint(index) < uint(len(n.spots)) {
			sum += int(n.spots[index].level)
		}
	}
	return sum
}

// stays reports whether an actor is in this grid's cells, where only the grid decides, and they hold it. It changes nothing, and reads the actor and its
// spot alone: each more is a wait for memory.
func (n *Grid) stays(a actorrep.Actor, index int, id netguid.GUID) bool {
	if uint(index) >= uint(len(n.spots)) || n.spots[index].id != id || !n.spots[index].alone {
		return false
	}
	x, y, z, cull, located := n.location(a)
	return located && n.holds(index, x, y, z, cull)
}

// holds reports whether an actor's cells are those of a position within the slack of this one, with the same cull distance.
func (n *Grid) holds(index int, x, y, z, cull float64) bool {
	s := &n.spots[index]
	if s.kind != inCells || s.cull != cull {
		return false
	}
	d := slack * n.size(s.level)
	return square(x-s.x, y-s.y, z-s.z) <= d*d
}

// resettle removes an actor from the cells.
func (n *Grid) resettle(it *Item, kind spotKind) {
	s := &n.spots[it.Index]
	if s.kind == kind {
		return
	}
	n.takeOut(it)
	s.kind = kind
	if kind == everywhere {
		n.everywhere.add(it)
	}
	n.graph.LookAll(it)
}

// move places an actor, and looks at all connections in its old and new cells.
func (n *Grid) move(it *Item, x, y, z, cull float64, level int32) {
	size := n.size(level)
	enter, leave := reach(cull, size)
	s, pl := &n.spots[it.Index], &n.placed[it.Index]
	oldSpot, old := *s, *pl
	if oldSpot.kind == everywhere {
		n.everywhere.remove(it)
	}
	if oldSpot.kind != inCells || oldSpot.level != level {
		n.count(level, 1)
	}
	*s = spot{x: x, y: y, z: z, enter: enter * enter, leave: leave * leave, cull: cull, level: level, kind: inCells, alone: s.alone, id: s.id}
	*pl = placement{box: box{cellOf(x-leave, size), cellOf(y-leave, size), cellOf(x+leave, size), cellOf(y+leave, size)}}
	sameLevel := oldSpot.kind == inCells && oldSpot.level == level
	i := int32(0)
	for cy := pl.box.y0; cy <= pl.box.y1; cy++ {
		for cx := pl.box.x0; cx <= pl.box.x1; cx++ {
			if touches(cx, cy, size, x, y, leave) {
				if sameLevel && old.box.has(cx, cy) {
					j := old.box.index(cx, cy)
					pl.at[i], old.at[j] = old.at[j], 0 // it stays there
				}
				if pl.at[i] == 0 {
					pl.at[i] = n.putInto(n.cells.get(cellKey{level, cx, cy}), it)
				}
			}
			i++
		}
	}
	if oldSpot.kind == inCells {
		n.eachCell(oldSpot.level, &old, func(c, i int32) {
			n.lookIn(c, it)
			n.takeFrom(c, old.at[i]-1)
		})
		if !sameLevel {
			n.count(oldSpot.level, -1)
		}
	}
	if oldSpot.kind == everywhere {
		n.graph.LookAll(it)
		return
	}
	n.eachCell(level, pl, func(c, _ int32) { n.lookIn(c, it) })
}

// lookIn looks at an actor for the connections in a cell.
func (n *Grid) lookIn(c int32, it *Item) {
	for _, v := range n.cells.cells[c].viewers {
		n.look(n.viewers[v], int32(it.Index))
	}
}

func (n *Grid) putInto(c int32, it *Item) (at int32) {
	items := &n.cells.cells[c].items
	*items = append(*items, int32(it.Index))
	return int32(len(*items))
}

// cellOf is the cell of a coordinate.
func cellOf(x, size float64) int32 {
	return int32(min(max(math.Floor(x/size), -maxCell), maxCell))
}

// touches reports whether a circle touches a cell. The last cells are unbounded.
func touches(cx, cy int32, size, x, y, r float64) bool {
	if max(cx, cy) >= maxCell || min(cx, cy) <= -maxCell {
		return true
	}
	dx := x - min(max(x, float64(cx)*size), float64(cx+1)*size)
	dy := y - min(max(y, float64(cy)*size), float64(cy+1)*size)
	// A little more than the circle, because of rounding.
	return dx*dx+dy*dy <= r*r*(1+1e-9)
}
