package graph

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"
)

// A connection that is placed again looks at all actors of its cell. Many connections may be due in one Update, for example
// when a round begins. An Update then makes at most stepLooks looks, or one in looksPart of those that are due if that is
// more, or those of one connection if that is more. The most urgent go first. When more than stepLooks are due, connections
// that have moved by early of the slack fill up the part, so that few become overdue at once.
const (
	stepLooks = 1 << 14
	looksPart = 4
	early     = 3. / 4
	// mostUrgent is the urgency of a connection that isn't in the level, or has moved a cell's length.
	mostUrgent = 1. / slack
)

// move is a connection that is due to be placed in a level.
type move struct {
	gv      *gridViewer
	x, y, z float64
	level   int
	remove  bool // it leaves the level
	looks   int  // actors in its old cell and its new one
	urgency float64
}

// Update places the connections that have moved.
func (n *Grid) Update(time.Duration) {
	n.moves = n.moves[:0]
	due := 0
	for _, v := range n.graph.viewers {
		due += n.findMoves(n.viewers[v.Index])
	}
	if len(n.moves) == 0 {
		return
	}
	slices.SortStableFunc(n.moves, func(a, b move) int { return cmp.Compare(b.urgency, a.urgency) })
	part, looked := 0, 0
	if due > stepLooks {
		part = due / looksPart
	}
	most := max(stepLooks, part)
	for i := range n.moves {
		m := &n.moves[i]
		overdue := m.urgency > 1
		switch {
		case overdue && looked > 0 && looked+m.looks > most:
			m.gv.at[m.level].waited++
			continue
		case !overdue && looked+m.looks > part:
			continue
		case m.remove:
			n.removeViewer(m.gv, m.level)
		default:
			n.moveViewer(m.gv, m.level, m.x, m.y, m.z)
		}
		looked += m.looks
	}
	clear(n.moves)
}

// findMoves notes the levels in which a connection is due to be placed again, and returns at how many actors it would look.
func (n *Grid) findMoves(gv *gridViewer) (looks int) {
	x, y, z, ok := n.viewpoint(gv)
	for rest := n.used | gv.in; rest != 0; rest &= rest - 1 {
		l := bits.TrailingZeros64(rest)
		in, use := gv.in>>l&1 != 0, ok && n.used>>l&1 != 0
		if !in && !use {
			continue
		}
		a, urgency := &gv.at[l], mostUrgent
		if in && use {
			s := slack * n.size(int32(l))
			d := square(x-a.x, y-a.y, z-a.z) / (s * s)
			if d <= early*early {
				a.waited = 0
				continue
			}
			urgency = min(math.Sqrt(d), mostUrgent)
		}
		m := move{gv: gv, x: x, y: y, z: z, level: l, remove: !use, urgency: urgency}
		if m.urgency > 1 {
			m.urgency += float64(a.waited) // a turn missed counts as much as the slack
		}
		if in {
			m.looks = len(n.cells.cells[a.cell].items)
		}
		if use {
			if c := n.cells.find(n.cellAt(l, x, y)); c != 0 && !(in && c == a.cell) {
				m.looks += len(n.cells.cells[c].items)
			}
		}
		n.moves = append(n.moves, m)
		looks += m.looks
	}
	return looks
}
