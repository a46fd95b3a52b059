package mesh

import (
	"fmt"
	"math"
	"slices"
)

// Table divides the plane among servers, in a grid whose cells may be divided further. What is outside the grid belongs to what is nearest. A table with a higher Epoch takes the
// place of this one while all servers run: a zone is split, merged or given to another server by a change of the table.
type Table struct {
	Epoch   uint64
	X, Y    float64  // the corner of the first cell
	Cell    float64  // the side of a cell
	Columns int      // cells in a row
	Servers []string // the server of each cell, row by row; behind these, the servers of the quarters of what is split
	// Splits are the places in Servers of what is split into quarters, in ascending order. Its own server is "" there. The quarters of the first one are the first four behind the cells: two of its upper half, and two of its lower one, where Y is higher.
	// Those of the next one follow. A quarter may be split as well. May be nil.
	Splits []int
}

// Bounds of a table.
const (
	maxCells  = 1 << 16
	maxSplits = maxCells / 4
	maxDepth  = 8 // of quarters in a cell
)

func (t *Table) check() error {
	rows := 0
	if t.Columns > 0 {
		rows = t.rows()
	}
	switch {
	case t.Epoch == 0:
		return fmt.Errorf("%w: Table.Epoch is 0", ErrConfig)
	case !(t.Cell > 0) || math.IsInf(t.Cell, 0) || math.IsInf(t.X, 0) || math.IsInf(t.Y, 0) || t.X != t.X || t.Y != t.Y:
		return fmt.Errorf("%w: Table.Cell %v at %v, %v", ErrConfig, t.Cell, t.X, t.Y)
	case len(t.Splits) > maxSplits || rows <= 0 || rows*t.Columns != t.cells() || t.cells() > maxCells:
		return fmt.Errorf("%w: Table has %d cells in rows of %d, and %d splits; whole rows, %d cells at most, and %d splits", ErrConfig, t.cells(), t.Columns, len(t.Splits), maxCells, maxSplits)
	}
	for i, at := range t.Splits {
		if at < 0 || at >= t.cells()+4*i || i > 0 && at <= t.Splits[i-1] || t.Servers[at] != "" || t.depth(at) >= maxDepth {
			return fmt.Errorf("%w: Table.Splits has %d; they ascend, each is of what is there without it and has no server, and a cell is halved %d times at most", ErrConfig, at, maxDepth)
		}
	}
	for i, id := range t.Servers {
		if id == "" && t.split(i) < 0 || len(id) > maxID {
			return fmt.Errorf("%w: Table.Servers has %q; an ID has 1 to %d bytes", ErrConfig, id, maxID)
		}
	}
	return nil
}

// cells is how many cells there are, without their quarters, and rows how many rows of them.
func (t *Table) cells() int { return len(t.Servers) - 4*len(t.Splits) }
func (t *Table) rows() int  { return t.cells() / t.Columns }

// split is which one of Splits a place in Servers is; below 0: it isn't split.
func (t *Table) split(at int) int {
	if t.Servers[at] != "" {
		return -1
	}
	i, ok := slices.BinarySearch(t.Splits, at)
	if !ok {
		return -1
	}
	return i
}

// depth is how often a cell was halved for a place in Servers.
func (t *Table) depth(at int) (n int) {
	for ; at >= t.cells(); n++ {
		at = t.Splits[(at-t.cells())/4]
	}
	return n
}

// side is the smallest one of a zone.
func (t *Table) side() float64 { return math.Ldexp(t.Cell, -t.depth(len(t.Servers)-1)) }

// index is the row or the column of v among n that begin at from.
func (t *Table) index(v, from float64, n int) int {
	i := math.Floor((v - from) / t.Cell)
	if !(i > 0) { // not a number, too
		return 0
	}
	return int(min(i, float64(n-1)))
}

// At is the server of a place.
func (t Table) At(x, y float64) string { return t.Servers[t.find(x, y)] }

// find finds where in Servers the server of a place is.
func (t *Table) find(x, y float64) int {
	row, column := t.index(y, t.Y, t.rows()), t.index(x, t.X, t.Columns)
	at, s := row*t.Columns+column, t.square(row, column)
	for {
		i := t.split(at)
		if i < 0 {
			return at
		}
		q, middle := 0, s.quarter(3)
		if x >= middle.x {
			q = 1
		}
		if y >= middle.y {
			q += 2
		}
		at, s = t.cells()+4*i+q, s.quarter(q)
	}
}

// square is a part of the plane.
type square struct{ x, y, side float64 }

// quarter is one of four, in the order of Table.Servers.
func (s square) quarter(q int) square {
	s.side /= 2
	s.x += float64(q&1) * s.side
	s.y += float64(q>>1) * s.side
	return s
}

// from is how far a place is from it.
func (s square) from(x, y float64) float64 {
	return math.Hypot(x-within(x, s.x, s.side), y-within(y, s.y, s.side))
}

// square is the place of a cell.
func (t *Table) square(row, column int) square {
	return square{t.X + float64(column)*t.Cell, t.Y + float64(row)*t.Cell, t.Cell}
}

// distance is how far a place is from a server's zone.
type distance struct {
	server string
	d      float64
}

// reach is the cells that are within r of a place, and the place in the grid that is nearest to it.
type reach struct {
	x, y                     float64
	top, bottom, left, right int
}

func (t *Table) reach(x, y, r float64) reach {
	rows := t.rows()
	x, y = within(x, t.X, float64(t.Columns)*t.Cell), within(y, t.Y, float64(rows)*t.Cell)
	return reach{x, y, t.index(y-r, t.Y, rows), t.index(y+r, t.Y, rows), t.index(x-r, t.X, t.Columns), t.index(x+r, t.X, t.Columns)}
}

// near adds the servers whose zones are within r of a place. Those that all has already keep the smaller distance.
func (t *Table) near(all []distance, x, y, r float64) []distance {
	in := t.reach(x, y, r)
	for row := in.top; row <= in.bottom; row++ {
		for column := in.left; column <= in.right; column++ {
			all = t.nearIn(all, row*t.Columns+column, t.square(row, column), in.x, in.y, r)
		}
	}
	return all
}

// nearIn is near in one place of Servers.
func (t *Table) nearIn(all []distance, at int, s square, x, y, r float64) []distance {
	d := s.from(x, y)
	if d > r {
		return all
	}
	i := t.split(at)
	if i < 0 {
		return noteDistance(all, t.Servers[at], d)
	}
	for q := range 4 {
		all = t.nearIn(all, t.cells()+4*i+q, s.quarter(q), x, y, r)
	}
	return all
}

func noteDistance(all []distance, server string, d float64) []distance {
	for i := range all {
		if all[i].server == server {
			all[i].d = min(all[i].d, d)
			return all
		}
	}
	return append(all, distance{server, d})
}

// within is the value nearest to v from a to a+length.
func within(v, a, length float64) float64 {
	if v != v {
		return a
	}
	return min(max(v, a), a+length)
}
