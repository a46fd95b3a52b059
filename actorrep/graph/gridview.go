package graph

import (
	"fmt"
	"math"
	"math/bits"
)

// gridViewer is a connection in a grid.
type gridViewer struct {
	v  *Viewer
	in uint64 // levels it is placed in
	at [levels]anchor
}

// anchor is where a connection was placed in a level.
type anchor struct {
	x, y, z float64
	cell    int32
	place   int32 // in the cell
	waited  int32 // Updates for which it has been overdue to be placed again
}

// AddPeer shows a connection the actors that are seen from everywhere. The others follow its viewpoint.
func (n *Grid) AddPeer(v *Viewer) {
	n.viewers = grown(n.viewers, v.Index)
	n.viewers[v.Index] = &gridViewer{v: v}
	for _, it := range n.everywhere.items {
		n.graph.Look(v, it)
	}
}

// RemovePeer removes a connection.
func (n *Grid) RemovePeer(v *Viewer) {
	gv := n.viewers[v.Index]
	for in := gv.in; in != 0; in &= in - 1 {
		n.leaveCell(gv, bits.TrailingZeros64(in))
	}
	n.viewers[v.Index] = nil
}

// viewpoint is where a connection looks from, with the height last. ok is false when that is nowhere.
func (n *Grid) viewpoint(gv *gridViewer) (x, y, z float64, ok bool) {
	x, y, z, ok = gv.v.Peer.Viewpoint()
	if n.YUp {
		y, z = z, y
	}
	return x, y, z, ok && finite(x, y, z)
}

// moveViewer places a connection in a level, and looks at the actors of its old and new cells.
func (n *Grid) moveViewer(gv *gridViewer, l int, x, y, z float64) {
	a := &gv.at[l]
	a.x, a.y, a.z, a.waited = x, y, z, 0
	if key := n.cellAt(l, x, y); gv.in>>l&1 == 0 || n.cells.cells[a.cell].key != key {
		n.changeCell(gv, l, key)
	}
	n.lookAtCell(gv, a.cell)
}

// removeViewer takes a connection out of a level, and hides the actors of its cell.
func (n *Grid) removeViewer(gv *gridViewer, l int) {
	gv.in &^= 1 << l
	n.lookAtCell(gv, gv.at[l].cell)
	gv.in |= 1 << l
	n.leaveCell(gv, l)
}

// cellAt is the key of a level's cell.
func (n *Grid) cellAt(l int, x, y float64) cellKey {
	size := n.size(int32(l))
	return cellKey{int32(l), cellOf(x, size), cellOf(y, size)}
}

// changeCell moves a connection to another cell, and looks at the actors of the old one.
func (n *Grid) changeCell(gv *gridViewer, l int, key cellKey) {
	a := &gv.at[l]
	c := n.cells.get(key)
	if gv.in>>l&1 != 0 {
		old := a.cell
		n.unlist(gv, l)
		a.cell = c
		n.lookAtCell(gv, old)
		n.cells.drop(old)
	}
	gv.in |= 1 << l
	a.cell = c
	list := &n.cells.cells[c].viewers
	a.place = int32(len(*list))
	*list = append(*list, int32(gv.v.Index))
}

// leaveCell removes a connection from its cell.
func (n *Grid) leaveCell(gv *gridViewer, l int) {
	n.unlist(gv, l)
	gv.in &^= 1 << l
	n.cells.drop(gv.at[l].cell)
}

func (n *Grid) unlist(gv *gridViewer, l int) {
	a := &gv.at[l]
	list := &n.cells.cells[a.cell].viewers
	last := len(*list) - 1
	other := (*list)[last]
	(*list)[a.place] = other
	n.viewers[other].at[l].place = a.place
	*list = (*list)[:last]
}

// lookAtCell looks at all actors of a cell for a connection.
func (n *Grid) lookAtCell(gv *gridViewer, c int32) {
	for _, i := range n.cells.cells[c].items {
		n.look(gv, i)
	}
}

// Explain says by how much an actor is out of range.
func (n *Grid) Explain(v *Viewer, it *Item) string {
	x, y, z, cull, located := n.location(it.Actor)
	vx, vy, vz, ok := v.Peer.Viewpoint()
	if n.YUp {
		vy, vz = vz, vy
	}
	switch {
	case !located || n.spots[it.Index].kind == everywhere:
		return "seen at any distance"
	case !finite(x, y, z):
		return fmt.Sprintf("its location is %v, %v, %v, which is nowhere", x, y, z)
	case !ok:
		return "the connection has no viewpoint; call Peer.SetViewpoint or SetViewTarget"
	case !finite(vx, vy, vz):
		return fmt.Sprintf("the connection's viewpoint is %v, %v, %v, which is nowhere", vx, vy, vz)
	}
	d := math.Sqrt(square(x-vx, y-vy, z-vz))
	switch sight := v.Sees(it); {
	case d > cull && sight == Hidden:
		return fmt.Sprintf("out of range by %.4g: %.4g away, seen within %.4g", d-cull, d, cull)
	case d > cull:
		return fmt.Sprintf("seen as %v, still: %.4g away, %.4g more than when it comes into sight", sight, d, d-cull)
	case sight == Hidden:
		return fmt.Sprintf("within range: %.4g away, seen within %.4g; from one of the next Steps on", d, cull)
	}
	return fmt.Sprintf("within range, seen as %v: %.4g away, seen within %.4g", v.Sees(it), d, cull)
}
